"""Records of jobs that ended, and their results."""

from __future__ import annotations

from disqued.core.fates.fate import DONE
from disqued.orderedqueue import effects as codes
from disqued.orderedqueue.add import Add
from disqued.orderedqueue.machine import Machine
from disqued.orderedqueue.records import MOST_BYTES
from orderedqueue.scenes import TTL_S, Scene, claim_of

C = b"consumer"


def retained(retry_s: int = 30) -> Add:
    add = Add(retry_s, TTL_S)
    add.retain_s = 60
    return add


def result_of(machine: Machine, index: int) -> bytes | None:
    record = machine.record(index)
    return None if record is None else record.result


def test_result_is_kept_for_the_retain_time() -> None:
    scene = Scene()
    job = scene.add(retained())
    claim = claim_of(scene.join(C))
    scene.ack(job, claim, b"42")
    record = scene.machine.record(job)
    assert record is not None
    assert (record.outcome, record.claim, record.result, record.ended_ms) == (DONE, claim, b"42", scene.now_ms)
    scene.wait(59_999)
    assert result_of(scene.machine, job) == b"42"
    scene.wait(1)
    assert scene.machine.record(job) is None


def test_result_that_nothing_keeps_is_refused_and_the_job_goes_back_to_its_worker() -> None:
    scene = Scene()
    job = scene.add()
    scene.join(C)
    assert scene.ack(job, result=b"42").code == codes.NOT_KEPT
    assert scene.machine.leased == 1
    assert scene.ack(job, result=b"42", keep_s=600).code == codes.OK
    assert result_of(scene.machine, job) == b"42"


def test_job_with_retry_0_takes_its_result_after_it_has_ended() -> None:
    scene = Scene()
    job = scene.add(retained(0))
    claim = claim_of(scene.join(C))
    assert scene.ack(job, claim + 1, b"no").code == codes.NO_JOB
    assert scene.ack(job, claim, b"42").value == 1
    assert scene.ack(job, claim, b"43").code == codes.NO_JOB
    assert result_of(scene.machine, job) == b"42"


def test_oldest_records_are_dropped_beyond_the_bound() -> None:
    scene = Scene()
    scene.join(C)
    jobs = [scene.add(retained()) for _ in range(18)]
    for job in jobs:
        scene.ack(job, result=bytes(1 << 20))
    assert scene.machine.record(jobs[0]) is None
    assert scene.machine.record(jobs[2]) is None
    assert scene.machine.record(jobs[-1]) is not None
    assert scene.machine._state.records.used_bytes <= MOST_BYTES
