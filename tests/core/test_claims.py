"""Claims as numbers: each is greater than those that are known, and which ones are stale."""

from __future__ import annotations

import random

import pytest

from disqued.core.jobs.attributes import CLAIM, Attributes, i64_value, merged, of, with_claim
from disqued.core.jobs.claims import MOST, NO_NODE, claim_of, next_claim, parse_claim, refusal, superseded
from disqued.core.jobs.job import Job
from disqued.errors import ReplyError
from persistence.samples import make_job

NOW_MS = 1_800_000_000_000
NODE = 4711


def claimed(claim: int) -> Job:
    job = make_job(random.Random(1), with_attributes=False)
    job.extra = with_claim(job.extra, claim)
    return job


def test_a_claim_has_the_time_and_the_number_of_its_node() -> None:
    claim = next_claim(0, NOW_MS, NODE)
    assert (claim >> 16, claim & 0xFFFF) == (NOW_MS, NODE)
    assert 0 < claim < 1 << 63


@pytest.mark.parametrize("known_ms", [NOW_MS - 1, NOW_MS, NOW_MS + 1, NOW_MS + 86_400_000])
def test_a_claim_is_greater_than_the_known_one_whatever_the_clock_says(known_ms: int) -> None:
    known = next_claim(0, known_ms, 0xFFFE)
    claim = next_claim(known, NOW_MS, 0)
    assert claim > superseded(known) > known
    assert claim >> 16 == max(NOW_MS, known_ms + 1)


def test_only_smaller_claims_are_stale() -> None:
    known = next_claim(0, NOW_MS, NODE)
    job = claimed(known)
    assert refusal(job, known) is None
    assert refusal(job, known + 1) is None
    error = refusal(job, known - 1)
    assert error is not None
    assert error.text == f"STALE The job was handed out again under claim {known}, stop working on it"


def test_a_job_that_another_node_queued_refuses_the_claim_before() -> None:
    known = next_claim(0, NOW_MS, NODE)
    error = refusal(claimed(superseded(known)), known)
    assert error is not None
    assert error.text == "STALE The job was queued again by another node, stop working on it"


def test_a_job_without_a_claim_refuses_none() -> None:
    assert refusal(make_job(random.Random(1), with_attributes=False), 1) is None


def test_two_holders_agree_on_the_greater_claim() -> None:
    low, high = next_claim(0, NOW_MS, 2), next_claim(0, NOW_MS + 1, 1)
    for one, other in [(low, high), (high, low)]:
        found = merged(with_claim(None, one), with_claim(None, other))
        assert found is not None
        assert found.number(CLAIM) == high


def test_a_claim_is_added_to_the_other_attributes() -> None:
    job = make_job(random.Random(1), with_attributes=True)
    assert job.extra is not None
    before = job.extra.values()
    assert with_claim(job.extra, 5).values() == before | {CLAIM: i64_value(5)}


@pytest.mark.parametrize("sent", [-1, -(1 << 63), (1 << 63) - 1])
def test_a_claim_that_no_node_can_have_made_stays_within_bounds(sent: int) -> None:
    job = claimed(0)
    job.extra = of({CLAIM: i64_value(sent)})
    assert isinstance(job.extra, Attributes)
    assert 0 <= claim_of(job) <= MOST
    assert 0 < next_claim(claim_of(job), NOW_MS, NO_NODE - 1) < 1 << 63


@pytest.mark.parametrize("word", [b"", b"0", b"-1", b"x", b"1.5", str(MOST + 1).encode(), b"9" * 30])
def test_a_word_that_is_no_claim_is_refused(word: bytes) -> None:
    with pytest.raises(ReplyError, match="ERR CLAIM must be a number"):
        parse_claim(word)
