"""Packed rows of waiting jobs beside a plain dict, over chunk borders, gaps and distant indexes."""

from __future__ import annotations

import random

import pytest

from disqued.orderedqueue.encoding import Reader, Writer
from disqued.orderedqueue.groups import Groups
from disqued.orderedqueue.job import Job, Profiles
from disqued.orderedqueue.line import CHUNK_ROWS, Line

START_MS = 1_800_000_000_000


def facts(job: Job | None) -> tuple[int, int, int, int] | None:
    """Index, time, size and TTL."""
    return None if job is None else (int(job.index), int(job.created_ms), int(job.size), int(job.profile.ttl_s))


class Both:
    """A line and a dict with the same jobs."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.profiles = Profiles(Groups())
        self.line = Line(self.profiles)
        self.jobs: dict[int, tuple[int, int, int, int]] = {}
        self.index = 0
        self.now_ms = START_MS

    def append(self) -> None:
        chance = self.chance
        self.index += chance.choice((1, 1, 1, 2, 50, 1 << 32))
        self.now_ms += chance.choice((0, 0, 1, 1000))
        ttl_s = chance.choice((5, 60, 86_400))
        size = chance.choice((0, 10, (1 << 31) - 1))
        profile = self.profiles.find(30, ttl_s, 0, False, b"")
        profile.jobs += 1
        self.line.append(self.index, self.now_ms, profile, size)
        self.jobs[self.index] = (self.index, self.now_ms, size, ttl_s)

    def pop(self) -> None:
        if self.jobs:
            first = min(self.jobs)
            assert self.line.first == first
            assert facts(self.line.pop()) == self.jobs.pop(first)

    def remove(self) -> None:
        if self.jobs:
            index = self.chance.choice(list(self.jobs))
            self.line.remove(index)
            del self.jobs[index]

    def expire(self) -> None:
        self.now_ms += self.chance.choice((1, 5000, 60_000))
        most = self.chance.choice((3, 10_000))
        expected = [job[0] for job in self.jobs.values() if job[1] + job[3] * 1000 <= self.now_ms]
        found = self.line.expired(self.now_ms, most)
        assert found == sorted(expected)[:most]
        for index in found:
            self.line.remove(index)
            del self.jobs[index]
        left = min((job[1] + job[3] * 1000 for job in self.jobs.values()), default=0)
        assert (self.line.soonest_ms > 0) == (left > 0)
        assert self.line.soonest_ms <= left

    def compare(self) -> None:
        line = self.line
        ordered = sorted(self.jobs)
        assert line.count == len(ordered)
        assert line.first == (ordered[0] if ordered else 0)
        probe = self.chance.randrange(self.index + 2)
        assert line.after(probe, 20) == [index for index in ordered if index > probe][:20]
        assert line.before(probe, 20) == [index for index in ordered if index < probe][::-1][:20]
        assert facts(line.find(probe)) == self.jobs.get(probe)
        if ordered:
            known = self.chance.choice(ordered)
            assert facts(line.find(known)) == self.jobs[known]

    def restore(self) -> None:
        out = Writer()
        self.line.write(out)
        data = out.done()
        self.line = Line(self.profiles)
        reader = Reader(data)
        self.line.read(reader)
        reader.finish()
        again = Writer()
        self.line.write(again)
        assert again.done() == data


@pytest.mark.parametrize("seed", range(8))
def test_line_equals_a_dict(seed: int) -> None:
    both = Both(seed)
    weights = {0: (10, 2, 2, 0), 1: (2, 5, 5, 1), 2: (10, 1, 9, 1)}
    for number in range(6000):
        phase = number // 1000 % 3
        action = both.chance.choices((both.append, both.pop, both.remove, both.expire), weights[phase])[0]
        action()
        if number % 10 == 0:
            both.compare()
        if number % 500 == 0:
            both.restore()
    both.compare()


def test_gaps_are_closed_so_that_memory_follows_the_jobs() -> None:
    both = Both(1)
    for _ in range(10 * CHUNK_ROWS):
        both.append()
    for index in sorted(both.jobs)[5:]:
        both.line.remove(index)
    words = sum(len(chunk.words) for chunk in both.line._chunks)
    assert words <= 64 * len(both.line._chunks)
    assert len(both.line._chunks) <= 2


def test_queue_that_is_emptied_each_time_keeps_one_chunk() -> None:
    both = Both(2)
    for _ in range(3 * CHUNK_ROWS):
        both.append()
        both.pop()
    assert len(both.line._chunks) == 1
