"""The server's log: one line per event, in the original's form, to standard output, a file and syslog.

`<pid>:<role> <day month time> <mark> <text>`, where the mark grades the line: `.` debug, `-` verbose, `*` notice,
`#` warning. Built on the standard library's logging.
"""

from __future__ import annotations

import logging
import logging.handlers
import sys
from datetime import datetime
from typing import Final

VERBOSE: Final = 15
NOTICE: Final = 25
_LEVELS: Final = {"debug": logging.DEBUG, "verbose": VERBOSE, "notice": NOTICE, "warning": logging.WARNING}
_MARKS: Final = {logging.DEBUG: ".", VERBOSE: "-", NOTICE: "*", logging.WARNING: "#"}
_LOGGER: Final = logging.getLogger("disqued")


class LineFormatter(logging.Formatter):
    """One log line; other loggers' levels get the mark of the level at or below them."""

    def format(self, record: logging.LogRecord) -> str:
        """The line without its end."""
        at = datetime.fromtimestamp(record.created).astimezone()
        mark = next((mark for level, mark in sorted(_MARKS.items(), reverse=True) if record.levelno >= level), ".")
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return f"{record.process}:P {at:%d %b %H:%M:%S}.{at.microsecond // 1000:03} {mark} {text}"


def configure(level: str, path: str, syslog: tuple[str, str] | None = None) -> None:
    """Send log lines to the file at `path`, to standard output when it is empty, and to syslog (ident, facility)."""
    handlers: list[logging.Handler] = [logging.FileHandler(path) if path else logging.StreamHandler(sys.stdout)]
    if syslog is not None:
        ident, facility = syslog
        system = logging.handlers.SysLogHandler("/dev/log", logging.handlers.SysLogHandler.facility_names[facility])
        system.ident = f"{ident}: "
        handlers.append(system)
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    for handler in handlers:
        handler.setFormatter(LineFormatter())
        root.addHandler(handler)
    set_level(level)


def set_level(level: str) -> None:
    """Drop lines below `level`."""
    _LOGGER.setLevel(_LEVELS[level])


def write(level: str, text: str) -> None:
    """Write a line."""
    _LOGGER.log(_LEVELS[level], text)
