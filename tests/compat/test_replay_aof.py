"""Recordings of nodes with an append-only file: replies, written files and loaded files.

The files of the original are in `tests/vectors/aof`. Ours are written without checksums here, so that both have the
same length.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pytest

from compat.fournodes import SEVERAL_NODES, ReplayCluster
from compat.recording import FILES, VECTORS, numbers
from disqued.config import Config
from disqued.core.cluster.holders import Holders
from disqued.core.host import disk
from disqued.core.jobs.codec import pack_for_disk
from disqued.core.jobs.job import ACTIVE, STATE_NAMES
from disqued.membership.nodesconf import encode
from disqued.node import ROOMS
from disqued.persistence.parse import LOADJOB, Entry, job_of
from disqued.persistence.reader import EntryReader
from disqued.testing.cluster import START_MS
from disqued.testing.host import FakeHost
from disqued.testing.local import LocalNode

if TYPE_CHECKING:
    from disqued.testing.cluster import Member

AOF, LOADING = FILES[4], FILES[7]
FILE: Final = "disque.aof"
N1, N2 = b"cf41298f824de3d64a1871b057243cff8aa0fc81", b"20f9ddc9c1e1a395f3aa379778e23b1c88650086"
SINGLE = b"0eaae66a82f4ee49b7709664e6944ca91a2101bf"
"""The node of the controlled restart."""
RECORDED_MS = 1_795_231_644_000
"""About when the files were written."""
OPTIONS: Final[dict[str, object]] = {"appendonly": True, "aof_checksums": False}
LOGGING: Final = ((1, 26),)
RESTARTED: Final = ((27, 30),)
CONTROLLED: Final = ((31, 39),)


@dataclass(frozen=True)
class Said:
    """What an entry says, but for what is of the run: IDs of the recording, a job with how long it lives."""

    job_id: bytes
    state: bytes = b"gone"
    flags: int = 0
    queue: bytes = b""
    body: bytes = b""
    numbers: tuple[int, ...] = ()
    """Tens of seconds to live, delay, retry, copies, NACKs, additional deliveries."""
    nodes: tuple[bytes, ...] = ()


def entries(data: bytes) -> list[Entry]:
    """The entries of a file, which is sound."""
    reader = EntryReader(ROOMS.record_table)
    reader.feed(data)
    reader.end()
    found: list[Entry] = []
    while (entry := reader.next()) is not None:
        assert isinstance(entry, Entry), entry
        found.append(entry)
    return found


def said(data: bytes, replayed: ReplayCluster | None = None) -> list[Said]:
    """What the entries of a file say; with the IDs of the recording if the file is one of a replayed."""
    name = replayed.names.to_recorded if replayed is not None else bytes
    found: list[Said] = []
    for entry in entries(data):
        if entry.words[0] != LOADJOB:
            assert entry.words[0] == b"DELJOB"
            found.append(Said(name(entry.words[1])))
            continue
        unpacked = job_of(entry)
        job, holders = unpacked.job, unpacked.holders
        lives = round((int(job.expire_at_s) * 1000 - int(job.ctime) // 10**6) / 10_000)
        figures = (lives, int(job.delay_s), int(job.retry_s), int(job.repl), job.nacks, job.additional_deliveries)
        nodes = tuple(sorted(name(holders[at : at + 40]) for at in range(0, len(holders), 40)))
        state = STATE_NAMES[unpacked.state]
        found.append(Said(name(job.id), state, int(job.flags), job.queue, job.body, figures, nodes))
    return found


def recorded(name: str) -> list[Said]:
    """What a file of the original says."""
    return said((VECTORS / "aof" / f"{name}.aof").read_bytes())


def written(member: Member, replayed: ReplayCluster) -> list[Said]:
    """What the file of a node of ours says."""
    return said(bytes(member.host.disk.files[FILE]), replayed)


def as_we_write(entry: Said) -> Said:
    """At-most-once jobs are never said to be queued, and a job is logged with all nodes that it was sent to."""
    if entry.body == b"async":
        return replace(entry, nodes=(N2, N1))
    if entry.state == b"queued" and entry.numbers[2] == 0:
        return replace(entry, state=b"active")
    return entry


def renewed(data: bytes, now_ms: int) -> bytes:
    """A recorded file as if it had been written now: the jobs have the same remaining lifetimes."""
    shift_s = (now_ms - RECORDED_MS) // 1000
    parts: list[bytes] = []
    for entry in entries(data):
        unpacked = job_of(entry)
        job = unpacked.job
        job.expire_at_s += shift_s
        job.ctime += shift_s * 10**9
        holders = Holders()
        packed = pack_for_disk(job, unpacked.state, holders.pack(holders.unpack(unpacked.holders)))
        parts.append(b"*2\r\n$7\r\nLOADJOB\r\n$%d\r\n%b\r\n" % (len(packed), packed))
    return b"".join(parts)


def become(member: Member, node_id: bytes, name: str, *, cut: int = 0) -> None:
    """Restart the node as a recorded one with a recorded file, without the last few bytes."""
    view = member.node.state.view
    text = encode(view).replace(member.id.decode(), node_id.decode())
    for peer in view.peers:
        text = text.replace(peer.decode(), N2.decode())
    member.crash()
    member.host.nodes_text = text
    data = (VECTORS / "aof" / f"{name}.aof").read_bytes()
    fresh = renewed(data, member.now_ms)
    assert len(fresh) == len(data)
    member.host.disk.put(FILE, fresh[: len(fresh) - cut])
    member.restart()
    assert member.id == node_id


# --- replies and records ----------------------------------------------------------------------------------------------


def test_nodes_with_a_file_answer_and_write_as_recorded() -> None:
    replayed = ReplayCluster(AOF, 2, options=OPTIONS)
    one, two = replayed.nodes.values()
    for theirs, ours in ((N1, one.id), (N2, two.id)):
        replayed.names.bind(theirs, ours)
        replayed.names.bind(theirs[:8], ours[:8])
    assert one.admin.call("CLUSTER", "MEET", "127.0.0.1", 17712) == b"OK"
    replayed.cluster.until(replayed.cluster.is_whole)

    replayed.play(1, 7)
    replayed.cluster.run(milliseconds=5)
    assert written(one, replayed) == list(map(as_we_write, recorded("01-addjob")))
    assert written(two, replayed) == recorded("02-replica")

    replayed.play(8, 17)
    replayed.cluster.run(seconds=2)
    two.pause()
    replayed.play(18)
    two.resume()
    replayed.play(19, 24)
    refused = next(entry.job_id for entry in recorded("04-full-life-replica") if entry.body == b"norepl")
    replayed.names.bind(refused, next(entry.job_id for entry in written(two, replayed) if entry.body == b"norepl"))
    first = list(map(as_we_write, recorded("03-full-life")))
    moved, once = (entry for entry in first if entry.queue == b"fed")
    # A job that was never logged needs no record that says so; an acknowledgement at another node is received.
    first = [entry for entry in first if entry != Said(refused)]
    assert written(one, replayed) == [*first, Said(once.job_id), Said(moved.job_id)]
    # Jobs that move are logged where they come to, and at-most-once jobs are gone when they are delivered.
    second = recorded("04-full-life-replica")
    here = [replace(moved, state=b"active", flags=7, nodes=(N2, N1)), replace(once, flags=5, nodes=(N2,))]
    assert written(two, replayed) == [*second[:-1], *here, Said(once.job_id), second[-1]]

    replayed.play(25, 26)
    left = [entry for entry in map(as_we_write, recorded("05-after-bgrewriteaof")) if entry.job_id != moved.job_id]
    assert sorted(written(one, replayed), key=str) == sorted(left, key=str)

    replayed.check()
    assert replayed.played == list(numbers(LOGGING))


def test_file_after_a_controlled_shutdown_is_as_recorded() -> None:
    member = LocalNode(Config(), FakeHost(), node_id=SINGLE)
    member.config.assign("aof_checksums", False)
    client = member.client()
    client.add("cq", "a")
    client.add("cq", "b", "RETRY", 0)
    client.add("cq", "c", "DELAY", 20, "RETRY", 5)
    client.add("cz", "d", "RETRY", 0)
    assert client.take("cz")
    assert member.shut_down("REWRITE-AOF") is None

    ours = {entry.body: replace(entry, job_id=b"") for entry in said(bytes(member.host.disk.files[FILE]))}
    theirs = {entry.body: replace(entry, job_id=b"") for entry in recorded("09-shutdown-rewrite")}
    del theirs[b"d"]  # it was delivered, and is at most once
    assert ours == theirs


# --- loading ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [f"{path.stem}" for path in sorted((VECTORS / "aof").glob("*.aof")) if path.name[:2] not in {"06", "08"}]
)
def test_a_file_of_the_original_is_loaded(name: str) -> None:
    data = (VECTORS / "aof" / f"{name}.aof").read_bytes()
    left: dict[bytes, Said] = {}
    for entry in recorded(name):
        if entry.state == b"gone":
            left.pop(entry.job_id, None)
        else:
            left.setdefault(entry.job_id, entry)
    host = FakeHost(now_ms=RECORDED_MS)
    host.disk.put(FILE, data)
    config = Config()
    config.assign("appendonly", True)
    node = LocalNode(config, host, node_id=N1)

    assert host.ended is None
    jobs = {job.id: job for job in node.node.state.lifecycle.table.jobs()}
    assert jobs.keys() == left.keys()
    for job in jobs.values():
        entry = left[job.id]
        assert job.state == ACTIVE
        assert (job.queue, job.body) == (entry.queue, entry.body)
        assert (job.delay_s, job.retry_s, job.repl, job.nacks, job.additional_deliveries) == entry.numbers[1:]
        assert set(job.delivered or (N1,)) == {*entry.nodes, N1}
        assert (job.requeue_at_ms == 0) == (job.retry_s == 0)
    assert bytes(host.disk.files[FILE]) == data, "nothing was written"


def test_file_with_trailing_garbage_is_refused() -> None:
    host = FakeHost(now_ms=RECORDED_MS)
    host.disk.put(FILE, (VECTORS / "aof" / "08-garbage.aof").read_bytes())
    config = Config()
    config.assign("appendonly", True)
    LocalNode(config, host)
    assert host.ended is not None
    assert "at byte 511" in host.ended


def test_truncated_file_is_repaired_as_by_the_original() -> None:
    host = FakeHost(now_ms=RECORDED_MS)
    host.disk.put(FILE, (VECTORS / "aof" / "06-truncated.aof").read_bytes())
    config = Config()
    config.assign("appendonly", True)
    LocalNode(config, host)
    assert bytes(host.disk.files[FILE]) == (VECTORS / "aof" / "07-truncated-fixed.aof").read_bytes()


def test_a_node_that_loaded_answers_as_recorded() -> None:
    replayed = ReplayCluster(AOF, 2, options=OPTIONS)
    member = replayed["n1"]
    assert member.admin.call("CLUSTER", "MEET", "127.0.0.1", 17712) == b"OK"
    replayed.cluster.until(replayed.cluster.is_whole)
    become(member, N1, "05-after-bgrewriteaof")
    replayed.play(27, 29)
    become(member, N1, "05-after-bgrewriteaof", cut=7)
    replayed.play(30)

    replayed.check()
    assert replayed.played == list(numbers(RESTARTED))


def test_a_node_that_was_restarted_in_a_controlled_way_answers_as_recorded() -> None:
    replayed = ReplayCluster(AOF, 1)
    member = replayed["n1"]
    member.host.config_text = "port 17711\n"
    replayed.play(31, 32)
    replayed.ask(33)
    replayed.played.append(33)
    assert member.host.ended == "shutdown"
    become(member, SINGLE, "09-shutdown-rewrite")
    replayed.play(34, 39)

    replayed.check()
    assert replayed.played == list(numbers(CONTROLLED))
    assert "\naof-enqueue-jobs-once no\n" in member.host.config_text


def test_a_node_that_loads_answers_as_recorded() -> None:
    replayed = ReplayCluster(LOADING, 1, options=OPTIONS)
    member = replayed["n1"]
    member.crash()
    data = renewed((VECTORS / "aof" / "01-addjob.aof").read_bytes(), START_MS)
    member.host.disk.put(FILE, data * 20_000)
    member.host.disk.delay_ms[disk.READ] = 100
    member.restart()
    replayed.cluster.run(milliseconds=250)
    replayed.play(1, 8)

    replayed.check()
    assert replayed.played == list(numbers(SEVERAL_NODES[LOADING]))


def test_all_that_was_recorded_is_replayed_here() -> None:
    assert [*LOGGING, *RESTARTED, *CONTROLLED] == sorted([*LOGGING, *RESTARTED, *CONTROLLED])
    assert list(numbers((*LOGGING, *RESTARTED, *CONTROLLED))) == list(numbers(SEVERAL_NODES[AOF]))
