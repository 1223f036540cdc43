"""The errors that clients tell apart: each has its code, the first word of its line."""

from __future__ import annotations

import pytest

from disqued.errors import (
    AuthenticationRequired,
    BadJobId,
    CommandSyntaxError,
    JobAcknowledged,
    Loading,
    NodeLeaving,
    NoJob,
    NotAnInteger,
    NotReplicated,
    OutOfMemory,
    QueueFull,
    QueuePaused,
    ReplyError,
    TooLate,
    WrongArity,
)

CODES = [
    (CommandSyntaxError(), "ERR"),
    (WrongArity("qlen"), "ERR"),
    (NotAnInteger(), "ERR"),
    (BadJobId(), "BADID"),
    (NoJob(), "NOJOB"),
    (JobAcknowledged(), "ACKED"),
    (TooLate(), "TOOLATE"),
    (NotReplicated(), "NOREPL"),
    (NotReplicated("for a reason"), "NOREPL"),
    (QueuePaused(), "PAUSED"),
    (QueueFull(), "MAXLEN"),
    (NodeLeaving(), "LEAVING"),
    (OutOfMemory(), "OOM"),
    (AuthenticationRequired(), "NOAUTH"),
    (Loading(), "LOADING"),
]


@pytest.mark.parametrize(("error", "code"), CODES, ids=lambda value: type(value).__name__)
def test_an_error_line_begins_with_its_code(error: ReplyError, code: str) -> None:
    assert error.code == code
    assert error.encode().startswith(b"-" + code.encode() + b" ")
    assert error.encode().endswith(b"\r\n")
    assert error.text == str(error)
