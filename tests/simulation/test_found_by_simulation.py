"""Bugs that the simulator found, each reproduced step by step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from disqued.config import Config
from disqued.core.host import disk
from disqued.testing.cluster import Cluster
from simulation import seeds


def logging(policy: str) -> Callable[[], Config]:
    """Configurations with the append-only file on."""

    def config() -> Config:
        made = Config()
        made.assign("appendonly", True)
        made.assign("appendfsync", policy)
        return made

    return config


def add_delayed(pair: Cluster) -> bytes:
    """A job on both nodes that is queued after a second, and requeued by either five seconds later."""
    creator = pair.members[0].admin
    creator.send("ADDJOB", "mail", b"body", 0, "REPLICATE", 2, "RETRY", 5, "DELAY", 1)
    pair.run(milliseconds=10)
    job = creator.next_reply()
    assert isinstance(job, bytes)
    return job


def test_a_job_that_is_queued_late_for_the_first_time_is_announced_and_not_counted(pair: Cluster) -> None:
    """Seed 1060: its queue was paused when its delay was over, and both holders queued it when the pause ended."""
    creator, holder = pair.members
    job = add_delayed(pair)
    creator.admin.call("PAUSE", "mail", "in")
    pair.run(seconds=5.6)
    assert pair.copies(job, "queued") == []
    assert creator.admin.call("ENQUEUE", job) == 1
    pair.run(seconds=3)
    assert pair.copies(job, "queued") == [creator]
    assert creator.admin.show(job)["additional-deliveries"] == holder.admin.show(job)["additional-deliveries"] == 0
    assert [sent.frame.message_flags for sent in pair.sent("QUEUED")] == [0]


def test_a_job_that_is_queued_in_time_for_the_first_time_is_not_announced(pair: Cluster) -> None:
    creator, _ = pair.members
    add_delayed(pair)
    pair.run(seconds=2)
    assert creator.admin.stat("mail")["len"] == 1
    assert pair.sent("QUEUED") == []


def test_copies_that_were_confirmed_are_there_when_all_nodes_lose_power_after_one_was_killed() -> None:
    """Mix "logged power": the next process of a killed node considered its unsynced data as synced."""
    cluster = Cluster(2, config=logging("always"))
    cluster.run(seconds=1)
    creator, holder = cluster.members
    holder.host.disk.hold(disk.SYNC)
    creator.admin.send("ADDJOB", "mail", b"body", 0, "REPLICATE", 2, "RETRY", 60)
    cluster.run(milliseconds=20)
    assert creator.admin.silent
    holder.host.disk.repair()
    holder.restart()
    cluster.until(lambda: not creator.admin.silent)
    job = creator.admin.next_reply()
    assert isinstance(job, bytes)
    for member in cluster.members:
        member.lose_power()
    for member in cluster.members:
        member.restart()
    assert cluster.copies(job) == [creator, holder]


def test_nodes_start_with_zeros_where_a_power_loss_left_no_data() -> None:
    """Mix "logged power", seed 2: only the end of the unsynced data was on the disk."""
    (node,) = Cluster(1, config=logging("no")).members
    done = node.admin.add("mail")
    node.admin.call("ACKJOB", done)
    data = bytes(node.host.disk.files["disque.aof"])
    gone = data.index(b"*2\r\n$6\r\nDELJOB")
    node.crash()
    node.host.disk.put("disque.aof", bytes(gone) + data[gone:])
    node.restart()
    assert node.serving
    assert node.admin.show(done) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [1135, 1148, 1212, 1458, 1605, 3137, 3497, 5979, 23959, 71459, 74151, 105138, 109111, 109638]
)
def test_runs_that_the_checkers_once_misjudged_are_accepted(seed: int) -> None:
    """The nodes were right.

    - 1135, 1212: a process was killed before a sync ended, loaded the end of its file from the memory of the system,
      and lost it with the power. It had not confirmed those jobs.
    - 1148: an at-most-once dead letter is not queued after a crash, and stays until its life of a week ends.
    - 1458: a job that a node had confirmed was purged while the node was down.
    - 1605: all poison jobs were lost with their nodes, and the run ended before the checkers looked for dead letters.
    - 3137, 3497: a node confirmed a job and dropped it after its acknowledgement. Then it got another copy while its
      disk failed, which it did not confirm, and was killed.
    - 5979: a leaving node asked a second node for the copy of an at-most-once job, because the first one was slow. That
      one had its copy again after a restart, and would never have delivered it.
    - 23959: the delay of a job that its creator did not keep began when it was placed; from the file it is known only
      when it was created.
    - 71459: a holder began to leave before the reply, which waited for the disk, and too few nodes remained.
    - 74151: a job was taken before its acknowledgement arrived, and both had waited for a sync.
    - 105138, 109638: the reader of the checkers accepted a damaged length at the end of a file, and a damaged PAUSE.
    - 109111: FASTACK finished a job while a holder was down.
    """
    seeds.run(seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "mix"),
    [(3509, "all"), (3526, "all"), (3575, "all"), (4020, "logged clocks"), (4327, "clocks"), (4458, "logged disks")],
)
def test_runs_of_other_mixes_that_the_checkers_once_misjudged_are_accepted(seed: int, mix: str) -> None:
    """The nodes were right.

    - 3509: a path that had been narrow stayed slow after it was healed, so a new node could not join.
    - 3526: as 1605, all poison jobs were lost, and the run ended before the checkers looked for dead letters.
    - 3575: as 4327, workers did not finish a job whose claims a resource refused.
    - 4020: a queue was purged by a node whose clock was three days behind, and a mark is kept for one day.
    - 4327: the clocks of two nodes were ten minutes ahead, and a resource refused the claims of the others.
    - 4458: a failing disk held back a reply with a claim, and later claims of the node left it before.
    """
    seeds.run(seed, mix)
