"""The errors that clients tell apart: each has its code, the first word of its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from disqued import errors
from disqued.errors import (
    AuthenticationRequired,
    BadJobId,
    CommandSyntaxError,
    DelayTooLong,
    JobAcknowledged,
    Loading,
    LogFull,
    LoginRefused,
    NodeEnding,
    NodeLeaving,
    NoJob,
    NoPermission,
    NoSchedule,
    NotAnInteger,
    NotReplicated,
    OutOfMemory,
    Protected,
    QueueFull,
    QueuePaused,
    RateLimited,
    ReplyError,
    SequenceError,
    StaleClaim,
    TooLate,
    WrongArity,
)

ROOT = Path(__file__).parents[1]
CODES = [
    (CommandSyntaxError(), "ERR"),
    (WrongArity("qlen"), "ERR"),
    (NotAnInteger(), "ERR"),
    (BadJobId(), "BADID"),
    (NoJob(), "NOJOB"),
    (JobAcknowledged(), "ACKED"),
    (TooLate(), "TOOLATE"),
    (DelayTooLong(60), "TTL"),
    (SequenceError("an entry is missing"), "SEQ"),
    (LogFull(10, 100), "LOGFULL"),
    (StaleClaim(5), "STALE"),
    (StaleClaim(0), "STALE"),
    (NotReplicated(), "NOREPL"),
    (NotReplicated("for a reason"), "NOREPL"),
    (QueuePaused(), "PAUSED"),
    (QueueFull(), "MAXLEN"),
    (NodeLeaving(), "LEAVING"),
    (NodeEnding(), "LEAVING"),
    (OutOfMemory(), "OOM"),
    (AuthenticationRequired(), "NOAUTH"),
    (LoginRefused(0, named=True), "WRONGPASS"),
    (LoginRefused(0, named=False), "ERR"),
    (Protected(), "DENIED"),
    (NoPermission("User a has none"), "NOPERM"),
    (RateLimited("a", 5), "RATELIMIT"),
    (Loading(), "LOADING"),
    (NoSchedule(b"nightly"), "NOSCHEDULE"),
]


@pytest.mark.parametrize(("error", "code"), CODES, ids=lambda value: type(value).__name__)
def test_an_error_line_begins_with_its_code(error: ReplyError, code: str) -> None:
    assert error.code == code
    assert error.encode().startswith(b"-" + code.encode() + b" ")
    assert error.encode().endswith(b"\r\n")
    assert error.text == str(error)


def test_all_codes_are_listed_since_they_are_counted_by_name() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "broker" / "disqued").rglob("*.py"))
    raised = set(re.findall(r'(?:ReplyError|super\(\).__init__)\(\s*f?"([A-Z]+) ', sources)) | {"MISCONF"}
    assert raised == set(errors.CODES)
