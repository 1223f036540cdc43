"""What the copies of several members say about a job, and what the merge makes of it."""

from __future__ import annotations

import pytest

from disqued.backup.errors import BackupError
from disqued.backup.merge import Merge, Merged, Outcome, entries
from disqued.core.cluster.holders import Holders
from disqued.core.jobs.attributes import CLAIM, META, PRIORITY, REASON, i32_value
from disqued.core.jobs.attributes import of as attributes_of
from disqued.core.jobs.job import ACTIVE, BCAST_QUEUED, DELIVERED, QUEUED, Job
from disqued.core.lifecycle.records import sealed
from disqued.persistence.records import EXTENDED, forget, keep
from disqued.resp.writer import request

NOW_S = 1_800_000_000
NODE = b"5ca1ab1e" * 5
JOB = b"D-5ca1ab1e-MTIzNDU2Nzg5MDEyMzQ1Njc4-05a1"
OTHER = b"D-5ca1ab1e-MTIzNDU2Nzg5MDEyMzQ1Njc5-05a1"


def job(job_id: bytes = JOB, *, retry_s: int = 300, delay_s: int = 0, left_s: int = 3600, flags: int = 0) -> Job:
    made = Job(job_id, b"mail", b"body", (NOW_S - 60) * 10**9, NOW_S + left_s, delay_s, retry_s, 1)
    made.flags = flags
    return made


def there(state: int = ACTIVE, made: Job | None = None, **counters: int) -> bytes:
    made = job() if made is None else made
    for name, value in counters.items():
        setattr(made, name, value)
    return keep(made, Holders(), NODE, state, with_sum=True)


def done(job_id: bytes = JOB) -> bytes:
    return forget(job_id)


def moved(job_id: bytes = JOB) -> bytes:
    return request((b"MOVED", job_id))


def merged(*copies: bytes, queue_at_most_once: bool = False) -> list[Merged]:
    """The jobs that the copies have together."""
    merge = Merge(NOW_S, queue_at_most_once)
    for number, copy in enumerate(copies):
        merge.take(number, entries([copy], "a copy"), "a copy")
    found = [merge.job(n, entry, "a copy") for n, copy in enumerate(copies) for entry in entries([copy], "a copy")]
    return [one for one in found if one is not None]


def restored(*copies: bytes) -> list[tuple[bytes, bool]]:
    """The IDs of the jobs that are restored, and whether they are queued."""
    return [(one.job.id, one.queued) for one in merged(*copies) if one.outcome is Outcome.RESTORED]


QUEUED_JOB, ACTIVE_JOB = [(JOB, True)], [(JOB, False)]


@pytest.mark.parametrize(
    ("copies", "expected"),
    [
        ([there(QUEUED)], QUEUED_JOB),
        ([there(ACTIVE)], ACTIVE_JOB),
        ([there(ACTIVE), there(QUEUED), there(ACTIVE)], QUEUED_JOB),
        ([there(QUEUED), b""], QUEUED_JOB),
        ([there(QUEUED) + done()], []),
        ([there(QUEUED), done()], []),
        ([done(), there(QUEUED)], []),
        ([there(QUEUED), there(ACTIVE) + done(), there(ACTIVE)], []),
        ([there(QUEUED) + done() + moved(), b""], QUEUED_JOB),
        ([there(QUEUED) + done() + moved(), there(ACTIVE)], QUEUED_JOB),
        ([there(QUEUED) + done() + moved(), there(ACTIVE) + done()], []),
        ([done(), there(QUEUED) + done() + moved()], []),
        ([there(QUEUED) + done() + moved() + there(ACTIVE) + done()], []),
        ([there(QUEUED) + done() + there(ACTIVE)], QUEUED_JOB),
        ([done(OTHER), there(QUEUED)], QUEUED_JOB),
        ([moved()], []),
    ],
    ids=[
        "queued",
        "taken by a worker",
        "queued on one of its holders",
        "on one member",
        "finished during the backup",
        "finished on a member that does not have it",
        "the same, whatever the order of the members",
        "finished on one of its holders",
        "left, and arrived after the end of the other copy",
        "left, and arrived",
        "left, arrived and was finished",
        "finished elsewhere before it left",
        "left, returned and was finished",
        "returned",
        "another job is finished",
        "left before the walk reached it: another copy has it, or it is finished",
    ],
)
def test_jobs_of_all_copies_are_merged(copies: list[bytes], expected: list[tuple[bytes, bool]]) -> None:
    assert restored(*copies) == expected


def test_counters_are_the_highest_of_all_copies() -> None:
    [one] = merged(there(QUEUED, nacks=1, additional_deliveries=4), there(ACTIVE, nacks=3, additional_deliveries=2))
    assert (one.job.nacks, one.job.additional_deliveries) == (3, 4)


def test_a_job_whose_time_to_live_is_over_is_left_out() -> None:
    [one] = merged(there(QUEUED, job(left_s=0)))
    assert one.outcome is Outcome.EXPIRED


@pytest.mark.parametrize(
    ("copy", "dropped", "queued"),
    [
        (there(QUEUED, job(retry_s=0, flags=BCAST_QUEUED)), Outcome.AT_MOST_ONCE, Outcome.RESTORED),
        (there(ACTIVE, job(retry_s=0, flags=BCAST_QUEUED)), Outcome.AT_MOST_ONCE, Outcome.AT_MOST_ONCE),
        (there(ACTIVE, job(retry_s=0, flags=DELIVERED)), Outcome.FINISHED, Outcome.FINISHED),
        (there(QUEUED, job(retry_s=0)) + done(), Outcome.FINISHED, Outcome.FINISHED),
    ],
    ids=["waits in its queue", "may have been delivered before a crash", "delivered", "delivered during the backup"],
)
def test_at_most_once_jobs_are_queued_only_if_that_is_asked_for(copy: bytes, dropped: Outcome, queued: Outcome) -> None:
    assert [one.outcome for one in merged(copy)] == [dropped]
    assert [one.outcome for one in merged(copy, queue_at_most_once=True)] == [queued]


def test_a_delayed_job_is_not_taken_for_one_that_was_queued() -> None:
    """Holders other than the owner have the flag; the owner has not as long as it waits for the delay."""
    waits = job(delay_s=600)
    [one] = merged(there(ACTIVE, job(delay_s=600, flags=BCAST_QUEUED)), there(ACTIVE, waits))
    assert not one.job.flags & BCAST_QUEUED
    [one] = merged(there(ACTIVE, job(delay_s=600, flags=BCAST_QUEUED)), there(QUEUED, waits))
    assert one.job.flags & BCAST_QUEUED


def test_a_queue_is_paused_if_it_was_on_any_member() -> None:
    def paused(queue: bytes, word: bytes) -> bytes:
        return request((b"PAUSE", queue, word))

    merge = Merge(NOW_S)
    for number, copy in enumerate(
        (paused(b"a", b"in") + paused(b"b", b"all"), paused(b"a", b"out") + paused(b"b", b"none"), paused(b"c", b"in"))
    ):
        merge.take(number, entries([copy], "a copy"), "a copy")
    assert merge.settings == [(b"PAUSE", b"a", b"all"), (b"PAUSE", b"b", b"all"), (b"PAUSE", b"c", b"in")]


@pytest.mark.parametrize("at", [3, 30, 70, 150])
def test_damage_is_an_error_that_tells_the_place(at: int) -> None:
    copy = bytearray(there(QUEUED) + there(QUEUED, job(OTHER)))
    copy[at] ^= 64
    with pytest.raises(BackupError, match="is damaged at byte"):
        merged(bytes(copy))


def test_a_copy_that_is_cut_off_is_an_error() -> None:
    with pytest.raises(BackupError, match="is damaged at byte 0"):
        merged(there(QUEUED)[:-1])


def urgent(extra: dict[int, bytes], state: int = ACTIVE) -> bytes:
    made = job()
    made.extra = attributes_of(extra)
    return there(state, made)


def waits(until_ms: int, nacks: int = 1) -> bytes:
    return request((b"POSTPONE", sealed(b"POSTPONE", b"%b %d %d 1" % (JOB, until_ms, nacks))))


def test_attributes_are_those_of_all_copies() -> None:
    first, reasoned = {PRIORITY: i32_value(3), META: b"trace"}, {PRIORITY: i32_value(3), REASON: b"no such user"}
    [one] = merged(EXTENDED + urgent(first, QUEUED), EXTENDED + urgent(first) + urgent(reasoned), there())
    assert one.job.extra is not None
    assert one.job.extra.values() == {PRIORITY: i32_value(3), META: b"trace", REASON: b"no such user"}


@pytest.mark.parametrize(
    ("copies", "until_ms", "nacks"),
    [
        ([EXTENDED + there() + waits(NOW_S * 1000 + 5000)], NOW_S * 1000 + 5000, 1),
        ([there() + waits(7), there() + waits(9, 4), there()], 9, 4),
        ([there() + waits(7), there(QUEUED)], 0, 1),
        ([there()], 0, 0),
        ([waits(7)], 0, 0),
    ],
    ids=["one copy", "the latest time", "queued elsewhere", "no delay", "a delay without its job"],
)
def test_a_job_that_a_worker_gave_back_for_later_keeps_its_delay(
    copies: list[bytes], until_ms: int, nacks: int
) -> None:
    found = merged(*copies)
    assert [(one.until_ms, one.job.nacks) for one in found] == [(until_ms, nacks)] * bool(copies != [waits(7)])


def test_delays_and_formats_are_no_settings() -> None:
    merge = Merge(NOW_S)
    merge.take(0, entries([EXTENDED + there() + waits(7) + request((b"PAUSE", b"mail", b"in"))], "a copy"), "a copy")
    assert merge.settings == [(b"PAUSE", b"mail", b"in")]


def test_the_greatest_claim_of_all_members_is_kept() -> None:
    def claims(claim: int) -> bytes:
        return request((b"CLAIM", sealed(b"CLAIM", b"%b %d" % (JOB, claim))))

    (one,) = merged(there() + claims(70_000) + claims(80_000), there() + claims(75_000))
    assert one.job.extra is not None
    assert one.job.extra.number(CLAIM) == 80_000
