"""QSTAT: the statistics of a queue.

They cover the lifetime of the queue in memory: idle queues are removed, and a new queue of that name starts at zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.commands.scope import first_word
from disqued.core.queues.limiter import NOTHING, REASONS
from disqued.core.queues.order import BANDS
from disqued.core.queues.queue import PAUSE_NAMES

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState


def qstat(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with names and values as a flat array; the null array for a queue that does not exist.

    `age` and `idle` are seconds; `import-from` lists the nodes that sent jobs of the queue in the last five seconds,
    `import-rate` is how many per second come from all of them. `priorities` is a flat array with the number of queued
    jobs by band of their priority; a queue that never had another priority than 0 does not have this field. `leased`
    counts the jobs that workers of this node have, without at-most-once jobs, `delayed` the jobs that wait on this node
    for the end of their delay, `dead` the queued jobs that are dead letters; `oldest-ms` is the age of the oldest
    queued job in milliseconds, and `settings` lists the names and patterns whose settings hold for the queue. `held`
    counts the jobs that were added here and wait for their parents. `limited` says why clients wait although there are
    jobs: for the `rate` or the `inflight` of the queue, or for the node that grants tokens (`home`); otherwise `no`.
    """
    queue = state.lifecycle.queues.get(args[1])
    if queue is None:
        session.reply_null_array()
        return
    order = queue.order
    session.reply_array(36 if order.has_priorities else 34)
    session.reply_bulk(b"name")
    session.reply_bulk(queue.name)
    _integer(session, b"len", queue.length)
    _integer(session, b"age", (state.now_ms - queue.created_ms) // 1000)
    _integer(session, b"idle", (state.now_ms - queue.used_ms) // 1000)
    _integer(session, b"blocked", queue.waiting)
    session.reply_bulk(b"import-from")
    watcher = queue.watcher
    sources = watcher.sources(state.now_ms) if watcher is not None else []
    session.reply_array(len(sources))
    for node_id in sources:
        session.reply_bulk(node_id)
    _integer(session, b"import-rate", watcher.import_rate(state.now_ms) if watcher is not None else 0)
    _integer(session, b"jobs-in", queue.jobs_in)
    _integer(session, b"jobs-out", queue.jobs_out)
    session.reply_bulk(b"pause")
    session.reply_bulk(PAUSE_NAMES[queue.pause])
    if order.has_priorities:
        session.reply_bulk(b"priorities")
        session.reply_array(2 * len(BANDS))
        for band, count in zip(BANDS, order.bands(queue.length), strict=True):
            _integer(session, band.encode(), count)
    _integer(session, b"leased", queue.leased)
    _integer(session, b"delayed", queue.delayed)
    _integer(session, b"dead", queue.dead)
    oldest = order.oldest()
    _integer(session, b"oldest-ms", 0 if oldest is None else max(state.now_ms - oldest.created_ms, 0))
    names = state.lifecycle.queues.index.names_for(queue.name)
    session.reply_bulk(b"settings")
    session.reply_array(len(names))
    for name in names:
        session.reply_bulk(name)
    _integer(session, b"held", queue.held)
    session.reply_bulk(b"limited")
    session.reply_bulk(REASONS[NOTHING if queue.limiter is None else queue.limiter.holds_back(state.now_ms)])


def _integer(session: Session, name: bytes, value: int) -> None:
    session.reply_bulk(name)
    session.reply_integer(value)


COMMAND: Final[Command] = Command(
    "qstat",
    2,
    ("readonly", "fast"),
    qstat,
    "queues",
    "Shows the statistics of a queue.",
    "queue",
    queues=first_word,
    categories=("inspect",),
)
