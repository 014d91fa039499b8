"""Logs: JSON, a line for each request, written to stderr; never a secret, a token or the value of an argument."""

import logging
import sys
from typing import Any

import orjson
import structlog


def configure(level: str) -> None:
    """Set up logging for the process.

    Args:
        level: debug, info, warning or error.
    """
    minimum = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _without_none,
            structlog.processors.JSONRenderer(serializer=_serialize),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(minimum),
        logger_factory=structlog.BytesLoggerFactory(file=sys.stderr.buffer),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=max(minimum, logging.WARNING), stream=sys.stderr, format="%(message)s")


def _without_none(_logger: Any, _method: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
    return {key: value for key, value in event.items() if value is not None}


def _serialize(event: Any, **options: Any) -> bytes:
    return orjson.dumps(event, default=options.get("default", str))
