"""From a file, or from plain values, to settings."""

from collections.abc import Mapping
from pathlib import Path

from gateway.config import explain, later, references
from gateway.config.document import Document, KeyPath, read_document
from gateway.config.model import Settings
from gateway.config.problems import ConfigError, Problem
from gateway.wire.jsonrpc import JsonObject


def load(path: Path, environ: Mapping[str, str]) -> Settings:
    """Read a configuration file.

    Args:
        path: the YAML file; problems name it as it is written here.
        environ: what `${NAME}` refers to.

    Raises:
        ConfigError: every problem of the file, in its order.
    """
    document, problems = read_document(path)
    return settle(document, environ, problems)


def from_mapping(tree: JsonObject, environ: Mapping[str, str] | None = None) -> Settings:
    """Check a configuration given as plain values; otherwise like `load`."""
    return settle(Document("configuration", tree), environ or {}, [])


def settle(document: Document, environ: Mapping[str, str] | None, problems: list[Problem]) -> Settings:
    """Check a document.

    Args:
        document: what was read.
        environ: what `${NAME}` refers to; None leaves it as it stands.
        problems: those found while reading.

    Raises:
        ConfigError: these problems and all others.
    """
    tree, unknown = document.tree, frozenset[KeyPath]()
    if environ is not None:
        tree, missing, unknown = references.resolve(document, environ)
        problems = [*problems, *missing]
    postponed = later.set_aside(document, tree)
    settings, refused = explain.check(document, tree, unknown)
    problems = [*problems, *postponed, *refused]
    if problems or settings is None:
        raise ConfigError(tuple(sorted(problems, key=lambda problem: problem.line or 0)))
    return settings
