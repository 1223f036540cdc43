"""What jobs say, fetched by their IDs: a task's part of a stream, and how a replay gets the same rows.

SHOW does not change anything, so it may be asked of any node and as often as wanted. The node of the lease is asked
first, then every other one. A job that a node says it does not know is looked for once more, for jobs move; and as long
as a member is away that might know it, until `giveUpAfter` is over. Only then it is lost.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from disqued.client import ConnectionFailed
from pyspark_disque.clock import TRY_AGAIN_S, Clock, Patience
from pyspark_disque.columns import Row
from pyspark_disque.intake import Intake, answers, best_first
from pyspark_disque.ledger import Lease
from pyspark_disque.options import Options

LOG: Final = logging.getLogger("pyspark_disque")
SLICE: Final = 100
"""So many jobs are in memory at a time, besides the rows that are collected."""
LOOKS: Final = 3
"""A job that all nodes do not know so often is gone."""
NAMED: Final = 5
"""So many lost jobs are named in a message."""


class JobsLost(RuntimeError):
    """Jobs of a batch are gone, and `failOnDataLoss` is true."""


class Bodies:
    """Fetches jobs. One thread."""

    def __init__(self, options: Options, intake: Intake, clock: Clock) -> None:
        self._options = options
        self._intake = intake
        self._clock = clock

    def rows(self, leases: Sequence[Lease]) -> Iterator[Row]:
        """A row for each job, in the order given.

        Raises:
            JobsLost: some are gone.
            ConnectionFailed: no node can be reached.
        """
        for first in range(0, len(leases), SLICE):
            part = leases[first : first + SLICE]
            found = self._find(part)
            lost = [lease.id for lease in part if lease.id not in found]
            if lost:
                self._report(lost)
            yield from (found[lease.id] for lease in part if lease.id in found)

    def _find(self, leases: Sequence[Lease]) -> dict[str, Row]:
        """As many of the jobs as there are."""
        found: dict[str, Row] = {}
        patience = Patience(self._options.give_up_after_s, self._clock)
        looks = 0
        while looks < LOOKS:
            try:
                all_answered = self._look([lease for lease in leases if lease.id not in found], found)
            except ConnectionFailed as error:
                patience.bear(error)
                continue
            if len(found) == len(leases) or (not all_answered and patience.is_over()):
                break
            looks += all_answered
            if looks < LOOKS:
                self._clock.sleep(TRY_AGAIN_S)
        return found

    def _look(self, leases: Sequence[Lease], found: dict[str, Row]) -> bool:
        """Ask for jobs, one node after the other; whether all nodes answered that had to be asked."""
        by_node: dict[str, list[Lease]] = {}
        for lease in leases:
            by_node.setdefault(lease.node, []).append(lease)
        all_answered = True
        for node, missing in by_node.items():
            for member in best_first(self._intake.members(), node):
                calls = [("SHOW", lease.id) for lease in missing]
                replies = self._intake.ask(member, partial(answers, calls=calls))
                if replies is None:
                    all_answered = False
                    continue
                rows = map(_row, missing, replies)
                found.update((row.id, row) for row in rows if row is not None)
                missing = [lease for lease in missing if lease.id not in found]  # noqa: PLW2901 - fewer for each node
                if not missing:
                    break
        return all_answered

    def _report(self, lost: Sequence[str]) -> None:
        names = ", ".join(lost[:NAMED]) + (f" and {len(lost) - NAMED} more" if len(lost) > NAMED else "")
        away = [m.address for m in self._intake.members() if self._intake.away_for_s(m) > 0]
        where = f"; not all nodes answer ({', '.join(away)})" if away else ""
        text = (
            f"{len(lost)} jobs of this batch are gone: {names}{where}. They were acknowledged or deleted by somebody "
            "else, or their ttl is over, since the batch was begun"
        )
        if self._options.fail_on_data_loss:
            raise JobsLost(f'{text}. To go on without them: .option("failOnDataLoss", "false")')
        LOG.warning("%s; it goes on without them, as failOnDataLoss is false", text)


def _row(lease: Lease, flat: Any) -> Row | None:
    """The row of a job that SHOW described; None for one that is not known, or by its acknowledgement only."""
    if flat is None:
        return None
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    body = fields[b"body"]
    if body is None or fields[b"queue"] is None:
        return None
    return Row(
        lease.queue,
        lease.id,
        body,
        fields[b"ctime"] // 1000,
        fields[b"nacks"],
        fields[b"additional-deliveries"],
        lease.node,
    )
