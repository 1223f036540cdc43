"""Transcripts: a script of commands and time in, the whole exchange of a cluster out, in files that a person reviews.

A file is a sequence of blocks: the lines of a script, a line `----`, what happened, and an empty line. Lines that begin
with `#` are comments. `python -m disqued.testing.transcript FILE ...` runs the scripts and shows what differs from the
files; with `--write` it rewrites them. The script knows these lines:

| line | effect |
| --- | --- |
| `cluster 3 [directive=value ...]` | start so many nodes and have them meet; the clock of the transcript starts |
| `nodes 2 [directive=value ...]` | start so many nodes that do not know each other |
| `start 1234` | start one more node that knows no other one; its ID comes from this seed |
| `1> ADDJOB mail body 0`, `1.worker> GETJOB FROM mail` | a client of node 1 sends a command |
| `1.worker closes` | the client disconnects |
| `wait 20ms`, `wait 5s` | virtual time passes |
| `cut 1 2`, `repair 1 2` | nothing arrives from node 1 at node 2; it waits, and arrives after all |
| `lose SETACK [by 1] [to 2]` | frames of a type are lost |
| `heal` | removes all cuts and losses |
| `crash 2`, `restart 2`, `pause 2`, `resume 2` | SIGKILL, start again with the files it has, SIGSTOP, SIGCONT |
| `secret 1 TEXT ...` | write the file `/secret` of node 1, and send the node SIGHUP |
| `ask 1 2 QSTAT mail` | node 1 has node 2 run a command, as its console does |
| `show PING PONG` | show these messages too |

`J1`, `J2` stand for jobs in the order in which they appear, `N1` for the ID of node 1, and times are seconds since the
beginning. What happened:

| line | meaning |
| --- | --- |
| `1 -> 2  GOTJOB J1` | node 1 sends a message to node 2 |
| `1 -> 1.worker  ...` | a client gets a reply |
| `1 job J1 queued, wakes at 299.9` | state and next wake time of a job of node 1, when they change |
| `1 job J1 gone` | node 1 has dropped the job |
| `1 logs LOADJOB J1` | a record is appended to the append-only file |
| `1 says ...` | a line in the log of the node |
"""

from __future__ import annotations

import argparse
import difflib
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from disqued.bus import kinds
from disqued.bus.frame import LISTED_BYTES, Frame
from disqued.client import ResponseError
from disqued.config import Config
from disqued.core.access.users import DEFAULT
from disqued.core.jobs.codec import unpack
from disqued.core.jobs.job import STATE_NAMES, Job
from disqued.core.queues.queue import PAUSE_NAMES
from disqued.membership.authentication import NEEDED
from disqued.node import ROOMS
from disqued.persistence.parse import LOADJOB, Entry
from disqued.persistence.reader import EntryReader
from disqued.queries.answering import parsed_query
from disqued.queries.room import Asker, queries_of
from disqued.settings.entries import decode
from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import LocalClient, Reply
from disqued.testing.logged import LOG_NAME
from disqued.testing.network import Sent

SETTLE_S: Final = 10
"""After this time a new cluster has met and is quiet."""
QUIET: Final = frozenset({"PING", "PONG", "MEET", "HOST"})
"""Messages that are only shown when the script asks for them."""
FLAGS: Final = {
    kinds.NOREPLY: "NOREPLY",
    kinds.INCR_NACKS: "INCR_NACKS",
    kinds.INCR_DELIVERIES: "INCR_DELIV",
    kinds.TRANSFER: "TRANSFER",
}
_SEPARATOR: Final = "----"
_JOB_ID: Final = re.compile(r"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}")
_NODE_ID: Final = re.compile(r"\b[0-9a-f]{40}\b")
_COMMAND: Final = re.compile(r"(\d+)(\.\w+)?> (.*)")
_SPAN: Final = re.compile(r"(\d+)(ms|s)")


class ScriptError(Exception):
    """A line of a script that cannot be run."""


class Stage:
    """One cluster, and a record of what happens in it."""

    def __init__(self, count: int, directives: dict[str, str], *, meet: bool) -> None:
        self.lines: list[str] = []
        self.shown: set[str] = set()
        self._jobs: dict[str, str] = {}
        self._known: dict[tuple[int, bytes], str] = {}
        """What was last said of each job of each node."""
        self._logged: dict[int, int] = {}
        """How many bytes of each append-only file were shown."""
        self._said: dict[int, int] = {}
        """How many lines of each log were shown."""
        self._clients: dict[str, LocalClient] = {}
        self.cluster = Cluster(count, config=partial(_config, directives), meet=meet)
        if meet:
            self.cluster.run(seconds=SETTLE_S)
        self._start_ms = self.cluster.network.now_ms
        self.cluster.network.watchers.append(self._on_frame)
        for member in self.cluster.members:
            self.listen_to(member)

    def listen_to(self, member: Member) -> None:
        """Show what the node logs from now on."""
        self._said[member.number] = len(member.host.log_lines)

    def member(self, number: str) -> Member:
        """The node of that number."""
        if not 0 < int(number) <= len(self.cluster.members):
            raise ScriptError(f"there is no node {number}")
        return self.cluster.members[int(number) - 1]

    # --- steps of the script ------------------------------------------------------------------------------------------

    def send(self, number: str, name: str | None, text: str) -> None:
        """Have a client of a node send a command; `J1` in it is the ID of a job."""
        ids = {label: job_id for job_id, label in self._jobs.items()}
        words = [ids.get(word, word) for word in shlex.split(text)]
        self._client(number, name).send(*words)
        self.observe()

    def _client(self, number: str, name: str | None) -> LocalClient:
        label = f"{number}{name or '.client'}"
        client = self._clients.get(label)
        if client is None or client.closed:
            client = self.member(number).client()
            client.listener = partial(self._on_reply, label, client)
            self._clients[label] = client
        return client

    def close(self, number: str, name: str | None) -> None:
        """Close the connection of a client."""
        self._client(number, name).disconnect()
        self.observe()

    def wait(self, milliseconds: int) -> None:
        """Let time pass and watch."""
        cluster = self.cluster
        end_ms = cluster.network.now_ms + milliseconds
        while cluster.network.now_ms < end_ms:
            cluster.step(end_ms)
            self.observe()

    # --- output of the nodes ------------------------------------------------------------------------------------------

    def _note(self, text: str) -> None:
        seconds = (self.cluster.network.now_ms - self._start_ms) / 1000
        self.lines.append(f"{seconds:9.3f}  {self._labels(text)}")

    def _labels(self, text: str) -> str:
        """Names instead of IDs."""
        text = _JOB_ID.sub(lambda found: self._jobs.setdefault(found[0], f"J{len(self._jobs) + 1}"), text)
        return _NODE_ID.sub(lambda found: self._node(found[0]), text)

    def _node(self, node_id: str) -> str:
        for member in self.cluster.members:
            if member.id.decode() == node_id:
                return f"N{member.number}"
        return "N?"

    def _on_frame(self, sent: Sent) -> None:
        if sent.kind in QUIET - self.shown:
            return
        receiver = "?" if sent.receiver is None else self._number(sent.receiver)
        lost = " (lost)" if any(lose(sent) for lose in self.cluster.network.filters) else ""
        said = " ".join([sent.kind, *_details(sent.frame)])
        self._note(f"{self._number(sent.sender)} -> {receiver}  {said}{lost}")

    def _number(self, endpoint: object) -> str:
        return next(str(member.number) for member in self.cluster.members if member is endpoint)

    def _on_reply(self, label: str, client: LocalClient) -> None:
        number = label.partition(".")[0]
        for reply in client.replies():
            self._note(f"{number} -> {label}  {shown(reply)}")
        if client.closed:
            self._note(f"{number} -> {label}  (connection closed)")

    def observe(self) -> None:
        """Note what changed in the nodes: their jobs, their files, their logs."""
        for member in self.cluster.members:
            if not member.alive:
                continue
            self._observe_jobs(member)
            self._observe_records(member)
            lines = member.host.log_lines
            for level, line in lines[self._said[member.number] :]:
                if level in {"notice", "warning"}:
                    self._note(f"{member.number} says {line}")
            self._said[member.number] = len(lines)

    def _observe_jobs(self, member: Member) -> None:
        table = member.node.state.lifecycle.table
        present = {job.id: job for job in table.jobs()}
        for job in sorted(present.values(), key=lambda job: (job.ctime, job.id)):
            said = self._said_of(job)
            if self._known.get((member.number, job.id)) != said:
                self._known[member.number, job.id] = said
                self._note(f"{member.number} job {job.id.decode()} {said}")
        for number, job_id in [known for known in self._known if known[0] == member.number]:
            if job_id not in present:
                del self._known[number, job_id]
                self._note(f"{number} job {job_id.decode()} gone")

    def _said_of(self, job: Job) -> str:
        state = STATE_NAMES[job.state].decode()
        wakes = f", wakes at {(job.awake_ms - self._start_ms) / 1000:.1f}" if job.awake_ms > 0 else ""
        return f"{state}{wakes}"

    def _observe_records(self, member: Member) -> None:
        data = bytes(member.host.disk.files.get(LOG_NAME, b""))
        seen = self._logged.get(member.number, 0)
        if len(data) < seen:
            self._note(f"{member.number} rewrote its append only file")
            seen = 0
        self._logged[member.number] = len(data)
        for words in records(data[seen:]):
            self._note(f"{member.number} logs {words}")


def _config(directives: dict[str, str]) -> Config:
    config = Config()
    for name, value in directives.items():
        config.set(name.encode(), value.encode())
    return config


def _details(frame: Frame) -> Iterator[str]:
    """What a message says."""
    of = frame.payload_kind
    if of == kinds.OF_JOB_ID:
        yield frame.job_id.decode()
        if frame.aux and frame.kind != kinds.QUEUED:  # a hash says nothing to a reader
            yield str(frame.aux)
    elif of == kinds.OF_JOB_IDS:
        for entry in range(frame.jobs_at, frame.end, LISTED_BYTES):
            aux = frame.listed_aux(entry)
            yield f"{frame.listed(entry).decode()} {aux}" if aux else frame.listed(entry).decode()
    elif of == kinds.OF_QUEUE:
        yield frame.queue.decode()
        yield PAUSE_NAMES[frame.aux].decode() if frame.kind == kinds.PAUSE else str(frame.aux)
    elif of == kinds.OF_NODE_ID:
        yield frame.about.decode()
    elif of == kinds.OF_JOBS:
        at: int = frame.jobs_at
        while at < frame.end:
            unpacked = unpack(frame.data, at, frame.end)
            job, listed = unpacked.job, unpacked.holders
            holders = [listed[start : start + 40].decode() for start in range(0, len(listed), 40)]
            yield f"{job.id.decode()} ({job.queue.decode()}, holders {' '.join(holders)})"
            at = unpacked.end
    elif frame.kind in {kinds.HOST, kinds.ZONE, kinds.EXTERNAL, kinds.TOKENBITS}:
        yield frame.payload.decode()
    elif frame.kind == kinds.SETTINGS:
        for told in decode(frame.payload):
            value = "removed" if told.removed else told.value.decode()
            yield f"({told.name.decode()} {told.key.decode()} {value})"
    elif frame.kind == kinds.RESPONSE:
        proofs = int.from_bytes(frame.payload[:4], "big")
        yield "without CHALLENGE" if proofs == NEEDED else f"proofs {proofs}"
    elif frame.kind == kinds.QUERY:
        _, *commands = parsed_query(frame.payload)
        yield from (b" ".join(words).decode() for words in commands)
    yield from (name for bit, name in FLAGS.items() if frame.message_flags & bit)


def shown(reply: Reply) -> str:
    """A reply in one line."""
    if isinstance(reply, ResponseError):
        return f"-{reply}"
    if isinstance(reply, bytes):
        return reply.decode("utf-8", "backslashreplace").replace("\r\n", " | ")
    if isinstance(reply, list):
        return "[" + ", ".join(map(shown, reply)) + "]"
    return "nil" if reply is None else str(reply)


def records(data: bytes) -> Iterator[str]:
    """The records in a part of an append-only file."""
    reader = EntryReader(ROOMS.record_table)
    reader.feed(data)
    reader.end()
    while isinstance(entry := reader.next(), Entry):
        words = entry.words
        if words[0] == LOADJOB:
            unpacked = unpack(words[1], 0, len(words[1]))
            yield f"LOADJOB {unpacked.job.id.decode()} {STATE_NAMES[unpacked.state].decode()}"
        else:
            yield b" ".join(words).decode()


def _links(stage: Stage, words: list[str], change: Callable[[Member, Member], None]) -> None:
    change(stage.member(words[0]), stage.member(words[1]))


def _lose(stage: Stage, words: list[str]) -> None:
    given = dict(zip(words[1::2], words[2::2], strict=True))
    by, to = (stage.member(given[name]) if name in given else None for name in ("by", "to"))
    stage.cluster.lose(words[0], by=by, to=to)


def _wait(stage: Stage, words: list[str]) -> None:
    span = _SPAN.fullmatch(words[0])
    if span is None:
        raise ScriptError(f"{words[0]} is not a time, for example 20ms or 5s")
    stage.wait(int(span[1]) * (1 if span[2] == "ms" else 1000))


def _start(stage: Stage, words: list[str]) -> None:
    stage.listen_to(stage.cluster.add(int(words[0])))


def _secret(stage: Stage, words: list[str]) -> None:
    member = stage.member(words[0])
    member.host.secret_files["/secret"] = "\n".join(words[1:]).encode()
    member.node.files_changed(member.now_ms)


def _ask(stage: Stage, words: list[str]) -> None:
    one, other = stage.member(words[0]), stage.member(words[1])
    state = one.node.state
    command = [word.encode() for word in words[2:]]

    def ask() -> None:
        queries_of(state).ask(state.view.peers[other.id], Asker(DEFAULT, logged_in=False), [command], lambda _: None)
        one.flush()

    one.on_input(ask)


_VERBS: Final[dict[str, Callable[[Stage, list[str]], None]]] = {
    "wait": _wait,
    "start": _start,
    "cut": lambda stage, words: _links(stage, words, stage.cluster.cut),
    "repair": lambda stage, words: _links(stage, words, stage.cluster.repair),
    "heal": lambda stage, _: stage.cluster.heal(),
    "lose": _lose,
    "crash": lambda stage, words: stage.member(words[0]).crash(),
    "restart": lambda stage, words: stage.member(words[0]).restart(),
    "pause": lambda stage, words: stage.member(words[0]).pause(),
    "resume": lambda stage, words: stage.member(words[0]).resume(),
    "secret": _secret,
    "ask": _ask,
    "show": lambda stage, words: stage.shown.update(words),
}


def _run_line(stage: Stage | None, line: str) -> Stage:
    """Run one line of a script."""
    words = line.split()
    if words[0] in {"cluster", "nodes"}:
        directives = dict([word.split("=", 1) for word in words[2:]])
        return Stage(int(words[1]), directives, meet=words[0] == "cluster")
    if stage is None:
        raise ScriptError("the first line must start a cluster")
    command = _COMMAND.fullmatch(line)
    if command is not None:
        stage.send(command[1], command[2], command[3])
    elif len(words) == 2 and words[1] == "closes":
        number, _, name = words[0].partition(".")
        stage.close(number, f".{name}")
    elif words[0] in _VERBS:
        _VERBS[words[0]](stage, words[1:])
        stage.observe()
    else:
        raise ScriptError(f"unknown line: {line}")
    return stage


def run(text: str) -> str:
    """Run the scripts of a file and return the file as it should be. Raises ScriptError."""
    made: list[str] = []
    stage: Stage | None = None
    is_output = False
    for line in text.splitlines():
        if is_output:
            is_output = line != ""
            if is_output:
                continue
        made.append(line)
        if line == _SEPARATOR:
            is_output = True
            if stage is not None:
                made += stage.lines
                stage.lines.clear()
        elif line and not line.startswith("#"):
            stage = _run_line(stage, line)
    return "\n".join(made) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Compare the files with what happens, or rewrite them."""
    parser = argparse.ArgumentParser(prog="transcript", description="Run transcripts of clusters in virtual time.")
    parser.add_argument("--write", action="store_true", help="rewrite the files instead of comparing them")
    parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args(arguments)
    differing = 0
    for path in options.files:
        before = path.read_text()
        after = run(before)
        if before == after:
            continue
        differing += 1
        sys.stdout.writelines(
            difflib.unified_diff(before.splitlines(True), after.splitlines(True), str(path), "what happens")
        )
        if options.write:
            path.write_text(after)
    return int(differing > 0 and not options.write)


if __name__ == "__main__":
    sys.exit(main())
