"""Rare states, counted to prove that the simulator reaches them.

Most are counted by the nodes themselves; others are seen in frames, in logs, or by the clients, which record them in
the history. The seeds of the test suite must reach every name in `RARE`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from disqued.acks.counters import DUMMY_ACKS_COLLECTED, DUMMY_ACKS_MADE
from disqued.bus import kinds
from disqued.bus.gossip import gossip_of
from disqued.core.jobs.job import WAIT_REPL, Job
from disqued.core.runtime.counters import COPIES_REFUSED, LINKS_OVERFLOWED
from disqued.delivery.counters import DUPLICATE_ENQUEUES_DROPPED, REQUEUES_PREVENTED
from disqued.federation.counters import IMPORTED_AT_MOST_ONCE, JOBS_IMPORTED
from disqued.membership.kept import membership_of
from disqued.replication.counters import ASYNC_HELD_BACK, EXTERNAL_REPLICATIONS, SYNC_COPIES_MISSING, TIMEOUTS
from disqued.schedule.counters import MISSED, REFUSED
from disqued.settings.counters import EXCHANGED
from disqued.testing.cluster import Cluster
from disqued.testing.history import History
from disqued.testing.network import Endpoint, Sent

_COUNTED: Final = {
    "tie-break lost": DUPLICATE_ENQUEUES_DROPPED,
    "WILLQUEUE answered by QUEUED": REQUEUES_PREVENTED,
    "dummy acknowledgement made": DUMMY_ACKS_MADE,
    "dummy acknowledgement collected": DUMMY_ACKS_COLLECTED,
    "external replication": EXTERNAL_REPLICATIONS,
    "copy refused": COPIES_REFUSED,
    "ASYNC held back by a slow link": ASYNC_HELD_BACK,
    "SYNC copy missing at the timeout": SYNC_COPIES_MISSING,
    "link overflowed": LINKS_OVERFLOWED,
    "ADDJOB timed out and was cleaned up": TIMEOUTS,
    "job imported": JOBS_IMPORTED,
    "at-most-once job imported": IMPORTED_AT_MOST_ONCE,
    "settings exchanged as a whole": EXCHANGED,
    "run of a schedule missed": MISSED,
    "run of a schedule left to another node": REFUSED,
}
"""The counters of nodes, by the name of the state."""

_LOGGED: Final = {
    "failure by majority": "failed, says the majority",
    "failure undone": "is reachable again",
    "torn end of the file cut off": "was cut off:",
    "damaged record left out": "Damage in the append only file",
    "damaged file kept": "The damaged file is kept",
    "file rewritten after a failed sync": "so the file is rewritten from memory",
    "rewrite failed": "could not be rewritten",
}

_SENT: Final[dict[str, Callable[[Sent], bool]]] = {
    "GOTACK for an unknown job": lambda sent: sent.kind == "GOTACK" and sent.frame.aux == 0,
    "acknowledgements of many jobs sent as a list": lambda sent: sent.kind == "SETACKS",
    "job dropped by its only other holder at once": lambda sent: (
        sent.kind == "GOTACK" and sent.frame.aux == kinds.DROPPED
    ),
    "copies of many jobs confirmed as a list": lambda sent: sent.kind == "GOTJOBS",
    "ENOUGH sent": lambda sent: sent.kind == "ENOUGH",
    "ENQUEUE sent": lambda sent: sent.kind == "ENQUEUE",
}

RARE: Final = (
    *_COUNTED,
    *_LOGGED,
    *_SENT,
    "REPLJOB repeated",
    "job of a schedule delivered",
    "counts of a schedule compared",
    "job delivered to a pattern",
    "result read at another node",
    "result read after its job was forgotten",
    "job given back for later",
    "poison job became a dead letter",
    "REDRIVE started",
    "REDRIVE cancelled",
    "dead letter stayed after CANCEL",
    "queue purged",
    "standing copy delivered",
    "stale write refused",
    "stale claim refused",
    "progress log read",
    "copies of many jobs sent in one message",
    "one more node asked for a copy",
    "forgotten node kept out",
    "external replication while leaving",
    "external replication while out of memory",
    "acknowledged at a node without the job",
    "WORKING too late",
    "job transferred by a leaving node",
    "leaving undone midway",
    "node returned under a new ID",
    "output held by the barrier",
    "file replaced while output was held",
    "refused for a failing disk",
    "copy refused for a failing disk",
    "delivery while another node loads",
    "job queued by a controlled restart",
    "at-most-once job not queued again",
    "acknowledged job came back after a power loss",
    "acknowledgement known when all nodes met",
    "node did not start for a failing disk",
)


class Rarities:
    """Watches one cluster for rare states."""

    def __init__(self, cluster: Cluster, history: History) -> None:
        self._cluster = cluster
        self._history = history
        self._seen: Counter[str] = Counter()
        self._asked: dict[tuple[Endpoint, bytes], list[Endpoint | None]] = {}
        """The nodes to which each node sent copies of each of its new jobs."""

    def watch(self, sent: Sent) -> None:
        """Inspect a frame that is sent."""
        for name, fits in _SENT.items():
            if fits(sent):
                self._seen[name] += 1
        if sent.kind == "REPLJOB":
            self._watch_copy(sent)
        elif sent.kind in {"PING", "PONG"} and sent.receiver is not None:
            view = sent.receiver.node.state.view
            forgotten = membership_of(sent.receiver.node.state).forgotten
            if forgotten and sent.frame.sender in view.peers:
                named = [entry.node_id for entry in gossip_of(sent.frame)]
                kept_out = [node_id for node_id in named if node_id in forgotten and node_id not in view.peers]
                self._seen["forgotten node kept out"] += len(kept_out)

    def _watch_copy(self, sent: Sent) -> None:
        self._seen["copies of many jobs sent in one message"] += len(sent.jobs) > 1
        for unpacked in sent.jobs:
            self._watch_job(sent, unpacked.job)

    def _watch_job(self, sent: Sent, job: Job) -> None:
        state = sent.sender.node.state
        if sent.receiver is not None:
            self._seen["copy refused for a failing disk"] += sent.receiver.node.state.write_refusal != ""
        registered = state.lifecycle.table.get(job.id)
        if registered is None or registered.state != WAIT_REPL:
            self._seen["job transferred by a leaving node"] += state.view.leaving
            return
        asked = self._asked.setdefault((sent.sender, job.id), [])
        if sent.receiver in asked:
            self._seen["REPLJOB repeated"] += 1
        else:
            asked.append(sent.receiver)
            self._seen["one more node asked for a copy"] += len(asked) > max(1, job.repl)

    def count(self) -> Counter[str]:
        """How often each state was reached."""
        found = Counter({name: self._seen[name] + self._history.rare[name] for name in RARE})
        for member in self._cluster.members:
            for counters in (*member.past_counters, member.node.state.counters):
                for name, row in _COUNTED.items():
                    found[name] += counters.value(row)
            found["output held by the barrier"] += member.held_turns
            found["file replaced while output was held"] += member.held_replacements
            for _, text in member.host.log_lines:
                for name, words in _LOGGED.items():
                    found[name] += words in text
        return found
