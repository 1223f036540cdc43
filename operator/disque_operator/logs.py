"""Log lines: one JSON object each, or plain text. Those about a cluster name it, as `cluster` and `namespace`."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any, Final

_KNOWN: Final = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_KOPF: Final = {"settings", "k8s_skip", "k8s_ref"}
"""What kopf attaches for its own use."""
QUIET: Final = ("kopf.objects", "kopf.activities", "kopf._core", "kopf._cogs", "aiohttp.access")
"""Loggers that tell of each event and each probe at INFO; only their warnings say something here."""


class JsonFormatter(logging.Formatter):
    """A line as a JSON object: `time`, `level`, `logger`, `message`, then what was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line without its end."""
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
    """A line for people: time, level, the cluster if it is about one, message."""

    def format(self, record: logging.LogRecord) -> str:
        """The line without its end."""
        cluster = getattr(record, "cluster", None)
        about = f"[{getattr(record, 'namespace', '')}/{cluster}] " if cluster else ""
        at = datetime.fromtimestamp(record.created, UTC)
        line = f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03}Z {record.levelname:7} {about}{record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def configure(form: str, level: str) -> None:
    """All lines go to standard error, those of libraries as well."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level) if level != "debug" else logging.DEBUG)


class ClusterLogger(logging.LoggerAdapter[logging.Logger]):
    """Lines about one cluster, which can say more by `extra`."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """The same line, with all that is known."""
        return msg, {**kwargs, "extra": {**(self.extra or {}), **(kwargs.get("extra") or {})}}


def about(namespace: str, name: str) -> ClusterLogger:
    """The logger for one cluster."""
    return ClusterLogger(logging.getLogger("disque_operator"), {"namespace": namespace, "cluster": name})
