"""The schedules of the cluster, as the node knows them: converts the reply of SCHEDULE * SHOW."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from disqued.console.figures import bytes_of, pairs, text_of
from disqued.console.text import key_of, shown

if TYPE_CHECKING:
    from disqued.resp.replies import Reply

MAX_SHOWN: Final = 1000
MAX_BODY_BYTES: Final = 2048
"""How much of a body is sent."""
_NUMBERS: Final = ("next-ms", "last-ms", "runs", "runs-missed")
_TEXTS: Final = ("when", "zone", "options", "missed", "strict", "state", "last-job", "problem")


def schedules_of(reply: Reply) -> list[dict[str, Any]]:
    """All schedules, by name."""
    rows = reply if isinstance(reply, list) else []
    return [_row(pairs(row)) for row in rows[:MAX_SHOWN] if isinstance(row, list)]


def _row(fields: dict[str, Reply]) -> dict[str, Any]:
    name, queue, body = (bytes_of(fields.get(field)) for field in ("name", "queue", "body"))
    row: dict[str, Any] = {
        "name": key_of(name),
        "name_shown": shown(name),
        "queue": key_of(queue),
        "queue_shown": shown(queue),
        "body": shown(body[:MAX_BODY_BYTES], breaks=True),
        "body_bytes": len(body),
    }
    row |= {field.replace("-", "_"): text_of(fields.get(field)) for field in _TEXTS}
    return row | {field.replace("-", "_"): fields.get(field) for field in _NUMBERS}
