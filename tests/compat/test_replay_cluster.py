"""Every recorded exchange with several nodes, repeated with as many of ours and compared byte for byte.

The whole conversation with four nodes is one test: each step finds what the steps before it left. Comments say what the
recorder did to the nodes between the requests.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from compat.fournodes import SEVERAL_NODES, ReplayCluster, States
from compat.recording import FILES, numbers

if TYPE_CHECKING:
    from disqued.testing.cluster import Member

CLUSTER = FILES[3]


def test_four_nodes_answer_as_recorded() -> None:
    replayed = ReplayCluster(CLUSTER, 4)

    meeting(replayed)
    copies(replayed)
    queueing_again(replayed)
    acknowledging(replayed)
    slow_and_dead_peers(replayed)
    federation(replayed)
    pausing(replayed)
    leaving(replayed)
    short_of_memory(replayed)
    failing_and_forgetting(replayed)

    replayed.check()
    assert replayed.played == list(numbers(SEVERAL_NODES[CLUSTER]))


def at(**states: str) -> States:
    """A job is in these states on these nodes, and unknown on the others."""
    return {f"n{number}": states.get(f"n{number}") for number in range(1, 5)}


def meeting(replayed: ReplayCluster) -> None:
    """Forming the cluster."""
    replayed.play(1, 7)


def copies(replayed: ReplayCluster) -> None:
    """The holders of a job after ADDJOB, with and without ASYNC."""
    replayed.chance(8, 8, at(n1="queued", n2="active", n4="active"))
    replayed.play(9, 13)
    replayed.chance(14, 14, at(n1="active", n2="queued", n4="active"), after_ms=5)
    replayed.play(15)


def queueing_again(replayed: ReplayCluster) -> None:
    """A queued job stays where it is; one that was fetched comes back once; NACK, ENQUEUE, WORKING."""
    replayed.chance(16, 16, at(n1="queued", n3="active", n4="active"))
    replayed.play(17)
    # The second of three was the first to queue it again. With us that is hardly ever so: the others have to be kept
    # from it.
    replayed.before = {18: partial(_pause, replayed, "none"), 20: partial(_pause, replayed, "in")}
    replayed.chance(18, 20, at(n1="active", n2="queued", n3="active"))
    replayed.play(21, 23)
    _pause(replayed, "none")
    replayed.chance(24, 24, at(n1="queued", n2="active", n3="active"))
    replayed.play(25, 34)


def acknowledging(replayed: ReplayCluster) -> None:
    """ACKJOB and FASTACK at nodes with and without the job, also if one does not respond."""
    replayed.play(35, 39)
    replayed.chance(40, 40, at(n1="queued", n3="active"))
    replayed.play(41)
    replayed.sees(41, 40, within_ms=300)
    replayed.play(42, 45)
    replayed["n4"].pause()
    replayed.play(46, 48)
    replayed["n4"].resume()
    replayed.sees(48, 45, within_ms=300)
    replayed.chance(49, 49, at(n1="queued", n3="active", n4="active"))
    replayed.play(50)
    replayed.sees(50, 49, within_ms=100)
    replayed.chance(51, 51, at(n1="queued", n3="active", n4="active"))
    replayed.play(52)
    replayed.sees(52, 51, within_ms=100)


def slow_and_dead_peers(replayed: ReplayCluster) -> None:
    """ADDJOB that waits for unresponsive nodes, and whose client disconnects."""
    n1, n3, n4 = replayed["n1"], replayed["n3"], replayed["n4"]
    n3.pause()
    n4.pause()
    replayed.play(53)
    n3.resume()
    replayed.cluster.run(milliseconds=500)
    for number in range(54, 60):
        # Whether the stopped node was among the first two that were asked.
        asked = 3 if number == 58 else 4
        replayed.until_as_recorded(number, number, partial(_is_held_by, asked, n1))
    n4.resume()
    replayed.play(60)

    replayed.flush()
    n3.pause()
    n4.pause()
    client = n1.client()
    client.send("ADDJOB", "tq", "x", 5000, "REPLICATE", 3)
    replayed.cluster.run(milliseconds=250)
    replayed.play(61, 62)
    client.disconnect()
    replayed.play(63)
    n3.resume()
    n4.resume()
    replayed.cluster.run(milliseconds=100)


def federation(replayed: ReplayCluster) -> None:
    """Jobs are on one node and consumers on another."""
    n1 = replayed["n1"].admin
    for number in range(12):
        n1.add("fed", f"j{number}", "REPLICATE", 1)
    n1.add("fed", "last-at-most-once", "REPLICATE", 1, "RETRY", 0)
    replayed.play(64, 82)
    waiting = replayed.ask(83)
    replayed.cluster.run(seconds=4)
    now_ms = replayed.cluster.network.now_ms
    n1.add("late", "x", "REPLICATE", 1)
    replayed.hear(83, waiting, now_ms)


def pausing(replayed: ReplayCluster) -> None:
    """PAUSE with BCAST, and a queue that takes no copies."""
    replayed.play(84, 93)


def leaving(replayed: ReplayCluster) -> None:
    """The replies of a leaving node and of the others, and where new jobs are placed."""
    replayed.play(94, 99)
    replayed.chance(100, 100, at(n2="active", n4="queued"), after_ms=5)
    replayed.play(101)
    replayed.chance(102, 102, at(n3="active", n4="active"), after_ms=5)
    replayed.play(103, 108)
    replayed.chance(109, 109, at(n4="queued"), after_ms=5)
    replayed.play(110, 112)


def short_of_memory(replayed: ReplayCluster) -> None:
    """A node that uses more than 75 % of its memory, then more than 95 %."""
    n1 = replayed["n1"].admin
    used_bytes = int(replayed["n1"].node.state.lifecycle.memory.used_bytes)
    assert n1.call("CONFIG", "SET", "maxmemory", used_bytes * 100 // 85) == b"OK"
    replayed.chance(113, 113, at(n2="queued", n3="active"), after_ms=5)
    replayed.play(114, 115)
    n1.call("PAUSE", "oq", "in")  # makes the queue: with full memory, GETJOB would not make it to ask other nodes
    n1.call("PAUSE", "oq", "none")
    assert n1.call("CONFIG", "SET", "maxmemory", 1) == b"OK"
    replayed.play(116, 119)
    replayed.cluster.run(milliseconds=5)  # GETJOB asked the others for jobs
    replayed.play(120)
    assert n1.call("CONFIG", "SET", "maxmemory", "1gb") == b"OK"


def failing_and_forgetting(replayed: ReplayCluster) -> None:
    """A node is killed and comes back, is forgotten by one of the others; another one becomes a new node."""
    for member in replayed.nodes.values():
        assert member.admin.call("CONFIG", "SET", "cluster-node-timeout", 1000) == b"OK"
    replayed["n4"].crash()
    replayed.play(121, 124)
    replayed["n4"].restart()
    replayed.play(125, 132)


def _pause(replayed: ReplayCluster, option: str) -> None:
    """Let two of three nodes put jobs back into their queue, or not."""
    for name in ("n1", "n3"):
        assert replayed[name].admin.call("PAUSE", "rq", option) == option.encode()


def _is_held_by(count: int, member: Member, job_id: bytes) -> bool:
    """Whether a node knows of so many nodes that may have a job."""
    nodes = member.admin.show(job_id)["nodes-delivered"]
    return isinstance(nodes, list) and len(nodes) == count
