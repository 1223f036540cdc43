"""The table of deliberate differences, read from the page that users read.

A row of `docs/differences.md` has five columns: where the request was recorded (`03:28`; several separated by commas;
`-` when it was not), the request, what the original answers, what this broker answers, why. Requests and replies are
code spans in the escapes of the recordings. For a recorded request the two replies may be the differing part alone, and
`…` in the original's stands for anything. A row about several recorded exchanges has a request for each. What was not
recorded may be several requests in inline syntax; a fresh node gets them one after the other, and the reply is that to
the last one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from compat.recording import Step, escape, unescape
from compat.wire import NotRespError, Reply, decode_all, encode

PAGE = Path(__file__).parent.parent.parent / "docs" / "differences.md"

ANYTHING = "…".encode()

_CELL = re.compile(r"(?<!\\)\|")
_SPAN = re.compile(r"`` (.*?) ``|`([^`]*)`")
_RECORDED = re.compile(r"\d\d:\d+(, \d\d:\d+)*")


@dataclass(frozen=True, slots=True)
class Difference:
    """One row."""

    recorded: tuple[str, ...]
    requests: tuple[bytes, ...]
    original: bytes
    ours: bytes
    reason: str

    def patch(self, answer: bytes) -> bytes:
        """The recorded answer with our part in the place of the original's; raises ValueError when it is not in it."""
        whole, found = self._replaced(answer)
        if found == 1 and _is_resp(whole):
            return whole
        replies = decode_all(answer)
        if sum(map(self._count, replies)) != 1:
            raise ValueError(f"{self.original!r} is not found once in the recorded answer {answer[:300]!r}")
        return b"".join(encode(self._replace(reply)) for reply in replies)

    def _replaced(self, text: bytes) -> tuple[bytes, int]:
        """The text with our part in the place of the original's, and how often that was found."""
        parts = map(re.escape, self.original.split(ANYTHING))
        return re.subn(b".*".join(parts), lambda _: self.ours, text, flags=re.DOTALL)

    def _count(self, reply: Reply) -> int:
        if isinstance(reply, list):
            return sum(map(self._count, reply))
        return self._replaced(reply)[1] if isinstance(reply, bytes) else 0

    def _replace(self, reply: Reply) -> Reply:
        if isinstance(reply, list):
            return [self._replace(element) for element in reply]
        return self._replaced(reply)[0] if isinstance(reply, bytes) else reply


def read_table() -> tuple[Difference, ...]:
    """Every row of the page; raises ValueError for one that cannot be understood."""
    lines = PAGE.read_text().splitlines()
    cells = [[cell.strip() for cell in _CELL.split(line.strip()[1:-1])] for line in lines if line.startswith("|")]
    return tuple(_row(row) for row in cells if row[0] == "-" or _RECORDED.fullmatch(row[0]))


def expected(step: Step, rows: tuple[Difference, ...]) -> bytes:
    """What our node has to answer to a recorded request: the recorded bytes but for what the table says."""
    answer = step.answer
    for row in rows:
        if step.name in row.recorded:
            answer = row.patch(answer)
    return answer


def _row(cells: list[str]) -> Difference:
    if len(cells) != 5 or not cells[4]:
        raise ValueError(f"a row has five filled columns, separated by bars: {cells}")
    where, request, original, ours, reason = cells
    return Difference(
        recorded=() if where == "-" else tuple(where.split(", ")),
        requests=_spans(request),
        original=b"".join(_spans(original)),
        ours=b"".join(_spans(ours)),
        reason=reason,
    )


def _spans(cell: str) -> tuple[bytes, ...]:
    texts = ((one or other).replace("\\|", "|").replace("…", escape(ANYTHING)) for one, other in _SPAN.findall(cell))
    return tuple(map(unescape, texts))


def _is_resp(data: bytes) -> bool:
    try:
        decode_all(data)
    except NotRespError:
        return False
    return True
