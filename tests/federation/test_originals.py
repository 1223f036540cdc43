"""Beside nodes of the original: what they ask for, what they send, and what they must never be sent."""

from __future__ import annotations

from itertools import count
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.bus import kinds
from disqued.bus.writer import FrameWriter
from disqued.core.jobs.job import Job
from disqued.federation.interest import requests_of
from disqued.node import ROOMS
from disqued.testing.cluster import START_MS, Cluster, Member
from federation.moving import added, holders, jobs_at, length_at, needjobs, received, waiting, yourjobs
from support.stories import as_original, tell

OURS: Final = {name for number, name in ROOMS.message_table.names.items() if number >= 32}
_numbers = count(1)


class Mixed:
    """Two of our nodes and an original, which says only what the story has it say."""

    def __init__(self) -> None:
        self.cluster = Cluster(3, meet=False)
        self.first, self.second, self.original = self.cluster.members
        as_original(self.original)
        self.cluster.meet()
        self.cluster.run(seconds=10)
        self.writer: FrameWriter = as_original(self.original)
        self.cluster.network.filters.append(
            lambda sent: sent.receiver is self.original and sent.frame.kind not in {kinds.PING, kinds.PONG}
        )
        self.cluster.forget_sent()

    def gives(self, receiver: Member, *jobs: Job) -> None:
        """The original sends jobs that it alone holds."""
        tell(receiver, yourjobs(self.writer, *jobs, holder=self.original.id))

    def told(self) -> list[str]:
        """What the original was sent about jobs."""
        kinds_sent = [sent.kind for sent in self.cluster.sent(to=self.original)]
        return [kind for kind in kinds_sent if kind not in {"PING", "PONG"}]


@pytest.fixture
def mixed() -> Mixed:
    return Mixed()


def foreign(queue: bytes = b"mail", *, retry_s: int = 60) -> Job:
    """A job of the original."""
    number = next(_numbers)
    ttl = b"05a1" if retry_s else b"05a0"
    job_id = b"D-0123abcd-%024d-%b" % (number, ttl)
    return Job(job_id, queue, b"body", (START_MS + number) * 1_000_000, 3600, 0, retry_s, 1)


def test_original_that_asked_gets_a_later_job(mixed: Mixed) -> None:
    tell(mixed.first, needjobs(mixed.writer, b"mail", 1))
    mixed.cluster.run(seconds=20)
    added(mixed.first)
    (sent,) = mixed.cluster.sent("YOURJOBS", to=mixed.original)
    assert sent.frame.jobs_count == 1
    added(mixed.first)
    assert len(mixed.cluster.sent("YOURJOBS", to=mixed.original)) == 1


def test_enough_is_never_sent_to_originals(mixed: Mixed) -> None:
    waiting(mixed.first, timeout_ms=5000)
    mixed.cluster.run(seconds=10)
    assert mixed.told() == ["NEEDJOBS", "NEEDJOBS"]
    assert [sent.receiver for sent in mixed.cluster.sent("ENOUGH")] == [mixed.second]


def test_original_source_is_asked_after_each_drain_and_never_for_more_than_a_hundred(
    mixed: Mixed,
) -> None:
    for _ in range(40):
        mixed.gives(mixed.first, *[foreign() for _ in range(30)])
        mixed.first.admin.take("mail", count=100)
        mixed.cluster.run(milliseconds=10)
    counts = [int(sent.frame.aux) for sent in mixed.cluster.sent("NEEDJOBS", to=mixed.original)]
    assert len(counts) >= 40
    assert max(counts) == 100
    assert set(mixed.told()) & OURS == set()


@pytest.mark.parametrize(
    ("asked_for", "waiting_jobs", "sent"), [(0, 3, 1), (1, 3, 1), (5, 9, 4), (5, 10, 5), (9, 1, 1)]
)
def test_half_of_the_jobs_are_kept_where_clients_ask_for_them(
    mixed: Mixed, asked_for: int, waiting_jobs: int, sent: int
) -> None:
    for _ in range(waiting_jobs + 1):
        added(mixed.first)
    mixed.first.admin.take("mail")
    tell(mixed.first, needjobs(mixed.writer, b"mail", asked_for))
    (message,) = mixed.cluster.sent("YOURJOBS")
    assert message.frame.jobs_count == sent


def test_no_node_gets_more_than_a_hundred_jobs_at_once(mixed: Mixed) -> None:
    for _ in range(500):
        added(mixed.first)
    tell(mixed.first, needjobs(mixed.writer, b"mail", (1 << 32) - 1))
    (message,) = mixed.cluster.sent("YOURJOBS")
    assert message.frame.jobs_count == 100


def test_importing_node_does_not_answer_needjobs(mixed: Mixed) -> None:
    mixed.gives(mixed.first, foreign(), foreign(), foreign())
    tell(mixed.first, needjobs(mixed.writer, b"mail", 1))
    assert mixed.cluster.sent("YOURJOBS") == []


def test_imported_job_has_two_holders_and_the_original_learns_it(mixed: Mixed) -> None:
    worker = waiting(mixed.first)
    job = foreign()
    mixed.cluster.forget_sent()
    mixed.gives(mixed.first, job)
    assert received(worker) == [job.id]
    assert mixed.told()[0] == "WILLQUEUE"
    assert holders(mixed.first, job.id) == {mixed.first.id, mixed.original.id}
    worker.send("ACKJOB", job.id)
    mixed.cluster.run(milliseconds=5)
    assert "SETACK" in mixed.told()
    assert jobs_at(mixed.first) == 1
    tell(mixed.first, mixed.writer.about_job(kinds.GOTACK, job.id, 1))
    assert mixed.told()[-1] == "DELJOB"
    assert jobs_at(mixed.first) == 0


def test_imported_at_most_once_job_has_one_holder(mixed: Mixed) -> None:
    worker = waiting(mixed.first)
    job = foreign(retry_s=0)
    mixed.cluster.forget_sent()
    mixed.gives(mixed.first, job)
    assert received(worker) == [job.id]
    assert holders(mixed.first, job.id) is None
    assert "WILLQUEUE" not in mixed.told()
    mixed.gives(mixed.first, job)
    assert length_at(mixed.first) == 0
    worker.send("ACKJOB", job.id)
    assert jobs_at(mixed.first) == 0


def test_at_most_once_job_sent_to_an_original_lists_it_as_its_only_holder(mixed: Mixed) -> None:
    added(mixed.first, "RETRY", 0)
    tell(mixed.first, needjobs(mixed.writer, b"mail", 1))
    (message,) = mixed.cluster.sent("YOURJOBS")
    assert message.frame.payload.endswith((1).to_bytes(4, "little") + mixed.original.id)
    assert jobs_at(mixed.first) == 0


def test_sender_of_an_acknowledged_job_gets_setack(mixed: Mixed) -> None:
    job = foreign()
    mixed.gives(mixed.first, job)
    mixed.first.admin.take("mail")
    mixed.first.admin.call("ACKJOB", job.id)
    mixed.cluster.run(milliseconds=5)
    mixed.cluster.forget_sent()
    mixed.gives(mixed.first, job)
    assert length_at(mixed.first) == 0
    assert mixed.first.admin.show(job.id)["state"] == b"acked"
    assert [kind for kind in mixed.told() if kind != "NEEDJOBS"] == ["WILLQUEUE", "SETACK"]


def test_dummy_acknowledgement_acknowledges_its_imported_job(mixed: Mixed) -> None:
    job = foreign()
    assert mixed.first.admin.call("ACKJOB", job.id) == 0
    assert mixed.first.admin.show(job.id)["state"] == b"acked"
    assert mixed.first.admin.call("JSCAN") == [b"0", []]
    mixed.gives(mixed.first, job)
    assert mixed.first.admin.call("JSCAN") == [b"0", [job.id]]
    assert length_at(mixed.first) == 0
    assert mixed.first.admin.show(job.id)["state"] == b"acked"
    assert mixed.first.admin.show(job.id)["queue"] == b"mail"


def test_imported_job_that_is_queued_already_stays_queued_once(mixed: Mixed) -> None:
    job = foreign()
    mixed.gives(mixed.first, job)
    mixed.gives(mixed.first, job, foreign())
    assert length_at(mixed.first) == 2


def test_broken_job_ends_the_message_but_keeps_the_jobs_before_it(mixed: Mixed) -> None:
    whole = yourjobs(mixed.writer, foreign(), foreign(), holder=mixed.original.id)
    broken = bytearray(whole)
    broken[-40 - 4] = 7  # the second job says it has seven holders, and names one
    tell(mixed.first, bytes(broken))
    assert length_at(mixed.first) == 1
    tell(mixed.first, whole)
    assert length_at(mixed.first) == 2


def test_frames_with_a_wrong_number_of_jobs_are_harmless(mixed: Mixed) -> None:
    for said, kept in ((0, 0), (1, 1), (9, 2)):
        frame = bytearray(
            yourjobs(mixed.writer, foreign(b"q%d" % said), foreign(b"q%d" % said), holder=mixed.original.id)
        )
        frame[144:148] = said.to_bytes(4, "big")
        tell(mixed.first, bytes(frame))
        assert length_at(mixed.first, f"q{said}") == kept


@given(name=st.binary(max_size=40), asked_for=st.integers(0, (1 << 32) - 1), enough=st.booleans())
def test_any_queue_and_any_number_may_be_asked_for(name: bytes, asked_for: int, enough: bool) -> None:
    mixed = _SHARED
    kind = kinds.ENOUGH if enough else kinds.NEEDJOBS
    tell(mixed.first, mixed.writer.about_queue(kind, name, asked_for))
    queue = mixed.first.node.state.lifecycle.queues.get(name)
    if queue is not None and (requests := requests_of(queue)) is not None:
        assert all(1 <= ask.count <= 100 for ask in requests.by_node.values())


_SHARED = Mixed()
