"""The notebook of the demo server: the one thing in it that changes."""

from collections.abc import Callable
from typing import Final

from gateway.wire.jsonrpc import JsonObject

INDEX_URI: Final = "demo://notes"
"""The resource that lists all notes; it is updated when one is added."""

_MAX_NOTES = 100


class Notes:
    """Notes by number, shared by all sessions."""

    def __init__(self) -> None:
        self._texts = {"1": "Buy milk.", "2": "Water the plants."}
        self._watchers: list[Callable[[], None]] = []

    @property
    def numbers(self) -> list[str]:
        """The numbers of all notes."""
        return list(self._texts)

    def text(self, number: str) -> str | None:
        """A note; None if there is none of that number."""
        return self._texts.get(number)

    def index(self) -> str:
        """All notes, one a line."""
        return "".join(f"{number}. {text}\n" for number, text in self._texts.items())

    def entries(self) -> list[JsonObject]:
        """Each note as `resources/list` describes it."""
        return [
            {"uri": f"{INDEX_URI}/{number}", "name": f"note {number}", "mimeType": "text/plain"}
            for number in self._texts
        ]

    def add(self, text: str) -> str:
        """Add a note, tell everybody who watches, and return its number.

        Raises:
            ValueError: the notebook is full.
        """
        if len(self._texts) >= _MAX_NOTES:
            raise ValueError("the notebook is full")
        number = str(len(self._texts) + 1)
        self._texts[number] = text
        for watcher in self._watchers:
            watcher()
        return number

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Call `watcher` after each change, until the function returned is called."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)
