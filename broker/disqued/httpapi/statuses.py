"""Errors of the API: a JSON object with a code and a message, and the HTTP status for each code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from disqued.httproutes import (
    BAD_REQUEST,
    CONTENT_TOO_LARGE,
    FORBIDDEN,
    INTERNAL_ERROR,
    METHOD_NOT_ALLOWED,
    NOT_FOUND,
    TOO_MANY_REQUESTS,
    UNAUTHORIZED,
    UNAVAILABLE,
    Answer,
)

JSON: Final = "application/json"
CONFLICT: Final = 409
TIMED_OUT: Final = 504
RETRY_AFTER_S: Final = 1
"""What the header Retry-After of an answer with status 503 says."""

STATUSES: Final[Mapping[str, int]] = {
    "ERR": BAD_REQUEST,
    "BADID": BAD_REQUEST,
    "TTL": BAD_REQUEST,
    "NOPROTO": BAD_REQUEST,
    "NOAUTH": UNAUTHORIZED,
    "WRONGPASS": UNAUTHORIZED,
    "NOPERM": FORBIDDEN,
    "DENIED": FORBIDDEN,
    "NOJOB": NOT_FOUND,
    "NOSCHEDULE": NOT_FOUND,
    "ACKED": CONFLICT,
    "TOOLATE": CONFLICT,
    "EXISTS": CONFLICT,
    "STALE": CONFLICT,
    "SEQ": CONFLICT,
    "LOGFULL": CONFLICT,
    "NOPARENT": CONFLICT,
    "RATELIMIT": TOO_MANY_REQUESTS,
    "PAUSED": UNAVAILABLE,
    "MAXLEN": UNAVAILABLE,
    "LEAVING": UNAVAILABLE,
    "CLOCK": UNAVAILABLE,
    "OOM": UNAVAILABLE,
    "MISCONF": UNAVAILABLE,
    "LOADING": UNAVAILABLE,
    "NOQUORUM": UNAVAILABLE,
    "NOREPL": TIMED_OUT,
}
"""By the code of an error reply (`disqued.errors`)."""
INVALID: Final = "INVALID"
OWN_CODES: Final[Mapping[str, int]] = {
    INVALID: BAD_REQUEST,
    "UNAUTHORIZED": UNAUTHORIZED,
    "FORBIDDEN": FORBIDDEN,
    "NOTFOUND": NOT_FOUND,
    "METHOD": METHOD_NOT_ALLOWED,
    "TOOLARGE": CONTENT_TOO_LARGE,
    "WAIT": TOO_MANY_REQUESTS,
    "INTERNAL": INTERNAL_ERROR,
    "UNAVAILABLE": UNAVAILABLE,
}
"""The codes of errors that no command replied."""
_CODE_BY_STATUS: Final = {status: code for code, status in OWN_CODES.items() if code != INVALID}
_INTERNAL_REPLY: Final = "ERR internal error"


class ApiError(Exception):
    """A request is refused."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def status_of(code: str) -> int:
    """The HTTP status of an error."""
    return STATUSES.get(code) or OWN_CODES.get(code, BAD_REQUEST)


def error(code: str, message: str, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """The answer with an error."""
    status = status_of(code)
    if status == UNAVAILABLE:
        headers = (*headers, ("Retry-After", str(RETRY_AFTER_S)))
    content = json.dumps({"code": code, "message": message})
    return Answer(status, content, headers, JSON)


def error_reply(text: str) -> Answer:
    """The answer with an error reply of a command, its code included."""
    if text.startswith(_INTERNAL_REPLY):
        return error("INTERNAL", text.removeprefix("ERR "))
    code, _, message = text.partition(" ")
    return error(code, message) if code in STATUSES else error("ERR", text)


def as_json(answer: Answer) -> Answer:
    """The answer of another page, as an error of the API."""
    content = answer.content if isinstance(answer.content, str) else answer.content.decode("utf-8", "replace")
    code = _CODE_BY_STATUS.get(answer.status, INVALID)
    return Answer(answer.status, json.dumps({"code": code, "message": content}), answer.headers, JSON)
