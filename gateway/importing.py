"""`era-gateway import`: a client's list of servers becomes a configuration; what to do next is said on stderr."""

import os
import sys
from pathlib import Path

from gateway.config.imports import described, import_file
from gateway.config.problems import ConfigError, Problem


def run(source: Path, target: Path | None, *, force: bool) -> None:
    """Import a file.

    Args:
        source: the client's file.
        target: what is written; None for stdout.
        force: whether the target may exist.

    Raises:
        ConfigError: every problem; nothing was written.
    """
    if target is not None:
        _check_target(source, target, force=force)
    imported = import_file(source)
    if target is None:
        print(imported.text, end="")
    else:
        _write(target, imported.text, force=force)
    for note in imported.notes:
        print(f"note: {note}", file=sys.stderr)
    for variable in imported.variables:
        print(f"set {variable.name}: {described(variable)}", file=sys.stderr)
    if target is not None:
        print(f"{target}: written; next: era-gateway check -c {target}", file=sys.stderr)


def _check_target(source: Path, target: Path, *, force: bool) -> None:
    if target.exists() and source.exists() and target.samefile(source):
        raise _problem(target, "the file that is to be read", "choose another name")
    if os.path.lexists(target) and not force:
        raise _problem(target, "exists already", "choose another name, or give --force")


def _write(target: Path, text: str, *, force: bool) -> None:
    try:
        with target.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise _problem(target, "exists already", "choose another name, or give --force") from None
    except OSError as error:
        raise _problem(target, f"cannot be written: {error.strerror}", "choose another name") from None


def _problem(target: Path, what: str, remedy: str) -> ConfigError:
    return ConfigError((Problem(str(target), None, what, remedy=remedy),))
