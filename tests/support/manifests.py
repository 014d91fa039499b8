"""The files under deploy/ as what reads them sees them: kubectl puts the manifests together, as it does for users."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.config.load import load
from gateway.config.model import Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
PLACEHOLDER = re.compile(r"FILL-IN-[A-Za-z-]+")

Manifest = dict[str, Any]


class Manifests(list[Manifest]):
    """Some manifests, found by kind."""

    def the(self, kind: str) -> Manifest:
        """The only one of a kind."""
        (found,) = (manifest for manifest in self if manifest["kind"] == kind)
        return found


def tool(name: str) -> str:
    """A program of the development environment. Its wheel is for Linux alone: elsewhere the test is skipped.

    Raises:
        FileNotFoundError: it should be there, and is not.
    """
    if sys.platform != "linux":
        pytest.skip(f"there is a wheel of {name} for Linux only")
    found = shutil.which(name, path=str(Path(sys.executable).parent))
    if found is None:
        raise FileNotFoundError(f"{name} is missing: run scripts/setup")
    return found


def kustomized(folder: Path) -> Manifests:
    """What `kubectl apply -k` would apply."""
    done = subprocess.run([tool("kubectl"), "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Manifests(yaml.safe_load_all(done.stdout))


def settings_of(file: Path, environ: Mapping[str, str]) -> Settings:
    """A configuration as `era-gateway check` takes it. Raises ConfigError."""
    return load(file, environ)


def references(text: str) -> set[str]:
    """The environment variables that a configuration, or a compose file, refers to."""
    return set(re.findall(r"\$\{(\w+)", text))


def seconds(duration: str) -> float:
    """A duration as compose writes it, such as 40s."""
    assert duration.endswith("s"), duration
    return float(duration[:-1])


def mebibytes(quantity: str) -> float:
    """A quantity of memory as Kubernetes writes it."""
    number, unit = float(quantity[:-2]), quantity[-2:]
    return number * {"Ki": 1 / 1024, "Mi": 1, "Gi": 1024}[unit]


def every_value(tree: Any, key: str) -> Iterator[Any]:
    """What stands under a key, wherever it stands."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            if name == key:
                yield value
            yield from every_value(value, key)
    elif isinstance(tree, list):
        for value in tree:
            yield from every_value(value, key)
