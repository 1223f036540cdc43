"""IDs of jobs of ordered queues name their group and their index, and no other ID passes for one."""

from __future__ import annotations

from random import Random

import pytest

from disqued.core.jobs.jobid import JobIds, can_exist, is_job_id, ttl_minutes
from disqued.ordered import jobids

SALT = bytes(range(16))


@pytest.mark.parametrize("index", [1, 7, 1 << 20, (1 << 63) - 1])
def test_an_id_gives_back_its_group_and_index(index: int) -> None:
    job_id = jobids.GroupIds(jobids.group_word(42), SALT).make(index, 3600, True)
    assert is_job_id(job_id)
    assert can_exist(job_id)
    assert jobids.group_of(job_id) == b"0000002a"
    assert jobids.index_of(job_id) == index
    assert ttl_minutes(job_id) == 61


def test_an_at_most_once_job_has_an_even_time_to_live() -> None:
    assert ttl_minutes(jobids.GroupIds(b"00000001", SALT).make(1, 3600, False)) == 60


def test_ids_of_one_queue_cannot_be_guessed_from_another_ones_salt() -> None:
    one = jobids.GroupIds(b"00000001", SALT).make(5, 60, True)
    assert one != jobids.GroupIds(b"00000001", bytes(16)).make(5, 60, True)


def test_every_job_has_an_id_of_its_own() -> None:
    ids = jobids.GroupIds(b"00000001", SALT)
    made = [ids.make(index, 60 * (index % 100), index % 2 == 0) for index in range(1, 5000)]
    assert len({job_id[19:35] for job_id in made}) == len(made)
    assert [jobids.index_of(job_id) for job_id in made] == list(range(1, 5000))
    assert made[6] == jobids.GroupIds(b"00000001", SALT).make(7, 60 * 7, False)


def test_a_changed_character_is_noticed() -> None:
    job_id = jobids.GroupIds(b"00000001", SALT).make(99, 60, True)
    for at in (2, 9, 11, 20, 34, 36, 39):
        other = b"1" if job_id[at : at + 1] != b"1" else b"2"
        assert jobids.index_of(job_id[:at] + other + job_id[at + 1 :]) == 0, at


def test_ids_of_other_jobs_have_no_index() -> None:
    ids = JobIds(b"0000002a" + b"0" * 32, Random(1).randbytes)
    assert [
        job_id for job_id in (ids.make(60, at_least_once=True) for _ in range(2000)) if jobids.index_of(job_id)
    ] == []


@pytest.mark.parametrize("word", [b"", b"D-", b"x" * 40, b"D-" + b"\xff" * 38])
def test_other_words_have_no_index(word: bytes) -> None:
    assert jobids.index_of(word) == 0
