"""Logging as JSON objects or plain text. Lines about a cluster have the fields `cluster` and `namespace`."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any, Final

_KNOWN: Final = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_KOPF: Final = {"settings", "k8s_skip", "k8s_ref"}
"""Attributes that kopf adds to records for its own use."""
QUIET: Final = ("kopf.objects", "kopf.activities", "kopf._core", "kopf._cogs", "aiohttp.access")
"""Loggers that log every event and every probe at INFO; only their warnings are logged."""


class JsonFormatter(logging.Formatter):
    """Formats a record as JSON: `time`, `level`, `logger`, `message`, then the fields of `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without the line break."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _KNOWN | _KOPF}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """Formats a record as text: time, level, cluster if there is one, message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without the line break."""
        cluster = getattr(record, "cluster", None)
        about = f"[{getattr(record, 'namespace', '')}/{cluster}] " if cluster else ""
        at = datetime.fromtimestamp(record.created, UTC)
        line = f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03}Z {record.levelname:7} {about}{record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def configure(form: str, level: str) -> None:
    """Log to standard error, including the lines of libraries."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level) if level != "debug" else logging.DEBUG)


class ClusterLogger(logging.LoggerAdapter[logging.Logger]):
    """Logs lines about one cluster, with additional fields in `extra`."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Add the fields of the cluster to those of the line."""
        return msg, {**kwargs, "extra": {**(self.extra or {}), **(kwargs.get("extra") or {})}}


def about(namespace: str, name: str) -> ClusterLogger:
    """Return the logger of a cluster."""
    return ClusterLogger(logging.getLogger("disque_operator"), {"namespace": namespace, "cluster": name})
