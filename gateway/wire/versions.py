"""The revisions of the protocol that the gateway speaks."""

from typing import Final

MODERN: Final = "2026-07-28"
"""The revision of every request at the front door."""

SUPPORTED: Final = (MODERN,)
"""What `server/discover` and `-32022` name: the gateway's own versions, never an upstream's."""

LEGACY: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The revisions with a handshake, newest first."""

LATEST_LEGACY: Final = LEGACY[0]
