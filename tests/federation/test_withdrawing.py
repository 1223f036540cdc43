"""A node that is about to end wants nothing any more: what others have stays with them."""

from __future__ import annotations

import pytest

from disqued.federation.importing import withdraw
from disqued.testing.cluster import Cluster, Member
from federation.moving import added, jobs_at, length_at, received, waiting


def about_to_end(member: Member) -> None:
    for _ in withdraw(member.node.state):
        member.flush()
    member.flush()


@pytest.mark.parametrize("retry_s", [0, 60])
def test_later_jobs_stay_where_they_were_added(pair: Cluster, retry_s: int) -> None:
    first, second = pair.members
    waiting(second, "mail", "other")
    pair.run(seconds=5)
    about_to_end(second)
    pair.run(milliseconds=100)
    added(first, "RETRY", retry_s)
    pair.run(seconds=20)
    assert (length_at(first), jobs_at(second)) == (1, 0)


def test_job_in_flight_is_accepted_and_delivered(pair: Cluster) -> None:
    first, second = pair.members
    client = waiting(second)
    pair.run(seconds=5)
    job_id = added(first, "RETRY", 0)
    about_to_end(second)
    pair.run(milliseconds=100)
    assert received(client) == [job_id]


def test_later_clients_cause_no_requests(pair: Cluster) -> None:
    first, second = pair.members
    added(first)
    about_to_end(second)
    waiting(second)
    pair.run(seconds=20)
    assert length_at(first) == 1
