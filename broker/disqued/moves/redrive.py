"""REDRIVE: the command, and the message by which nodes share the work (`redriving`)."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.bus.frame import MAX_NAME_BYTES, Frame
from disqued.core.clients.session import Session
from disqued.core.cluster.peer import Peer
from disqued.core.commands.command import Command
from disqued.core.runtime.audit import always
from disqued.core.runtime.message import Message
from disqued.core.runtime.state import NodeState
from disqued.errors import CommandSyntaxError, NodeLeaving, ReplyError
from disqued.moves.redrivetask import MOST_JOBS, MOST_PATTERN_BYTES, MalformedError, Task, unpack
from disqued.moves.redriving import DEFAULT_RATE, FEATURE_REDRIVE, MOST_TASKS, RUNNING, Redrives
from disqued.moves.room import moves_of
from disqued.resp.integers import parse_integer


@mypyc_attr(acyclic=True)
class Redrive:
    """The options of a REDRIVE that starts a task."""

    def __init__(self) -> None:
        self.target = b""
        self.reason = b""
        self.count = MOST_JOBS
        self.rate = DEFAULT_RATE
        self.older_s = 0


def _number(word: bytes, name: str) -> int:
    value = parse_integer(word)
    if value is None or not 1 <= value <= MOST_JOBS:
        raise ReplyError(f"ERR {name} must be between 1 and {MOST_JOBS}")
    return value


def parse_redrive(args: list[bytes]) -> Redrive:
    """The options behind the name of the queue."""
    options = Redrive()
    for index in range(2, len(args), 2):
        word = args[index].upper()
        if index + 1 == len(args):
            raise CommandSyntaxError
        value = args[index + 1]
        if word == b"TO":
            options.target = value
        elif word == b"REASON":
            if len(value) > MOST_PATTERN_BYTES:
                raise ReplyError(f"ERR the pattern of REASON must have at most {MOST_PATTERN_BYTES} bytes")
            options.reason = value
        elif word == b"COUNT":
            options.count = _number(value, "COUNT")
        elif word == b"RATE":
            options.rate = _number(value, "RATE")
        elif word == b"OLDER":
            options.older_s = _number(value, "OLDER")
        else:
            raise CommandSyntaxError
    return options


def redrive(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Start a task, end it, or tell how far it is."""
    redrives = moves_of(state).redrives
    queue = args[1]
    what = args[2].upper() if len(args) == 3 else b""
    if what == b"STATUS":
        _show(session, redrives, queue)
        return
    if what == b"CANCEL":
        if not redrives.cancel(queue):
            raise ReplyError("ERR no REDRIVE of that queue is running, as far as this node knows")
        session.reply_status(b"OK")
        return
    options = parse_redrive(args)
    if max(len(queue), len(options.target)) > MAX_NAME_BYTES:
        raise ReplyError(f"ERR REDRIVE takes names of at most {MAX_NAME_BYTES} bytes")
    if options.target == queue:
        raise ReplyError("ERR The jobs are in that queue already")
    if state.view.leaving:
        raise NodeLeaving
    if redrives.is_running(queue):
        raise ReplyError("ERR a REDRIVE of that queue is running; wait for it, or send REDRIVE with CANCEL first")
    if redrives.running >= MOST_TASKS:
        raise ReplyError(f"ERR {redrives.running} REDRIVEs run on this node: wait for one, or cancel one")
    task = Task(queue, options.target, options.reason, options.older_s, state.now_ms)
    redrives.start(task, options.rate, options.count)
    session.reply_status(b"started")


def _show(session: Session, redrives: Redrives, queue: bytes) -> None:
    """Reply with the state of the last task; null if this node knows none."""
    run = redrives.runs.get(queue)
    told = redrives.told.get(queue)
    if run is not None and (told is None or told.task.started_ms <= run.task.started_ms):
        totals = (run.total("moved"), run.total("left"), run.total("failed"))
        _reply(session, run.state, run.task, totals, run.rate)
    elif told is not None:
        state = RUNNING if redrives.is_running(queue) else b"ended"
        _reply(session, state, told.task, (int(told.moved), int(told.left), int(told.failed)), 0)
    else:
        session.reply_null_array()


def _reply(session: Session, state: bytes, task: Task, totals: tuple[int, int, int], rate: i64) -> None:
    """The flat array. The rate is only known on the node that runs the task."""
    session.reply_array(12 if rate > 0 else 10)
    session.reply_bulk(b"state")
    session.reply_bulk(state)
    names = (b"moved", b"left", b"failed")
    for index, name in enumerate(names):
        session.reply_bulk(name)
        session.reply_integer(totals[index])
    session.reply_bulk(b"started")
    session.reply_integer(task.started_ms)
    if rate > 0:
        session.reply_bulk(b"rate")
        session.reply_integer(rate)


def handle_redrive(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Take part in a task of another node, or take its report."""
    try:
        message = unpack(frame.payload)
    except MalformedError as error:
        state.host.log("warning", f"Ignoring a REDRIVE from {peer.id.decode('ascii', 'replace')}: {error}")
        return
    moves_of(state).redrives.hear(peer, message)


def _queues(_state: NodeState, args: list[bytes]) -> list[bytes]:
    """The queue, and the target if one is named; jobs return to the queues that they come from otherwise."""
    return [args[1], *[args[at + 1] for at in range(2, len(args) - 1, 2) if args[at].upper() == b"TO"]]


MESSAGE: Final[Message] = Message(
    kinds.REDRIVE,
    "REDRIVE",
    kinds.OF_UNKNOWN,
    "a node that runs a REDRIVE, to the others: how many jobs they may move; and their reports to it",
    "the receiver moves jobs and reports; the node that runs the task counts them",
    handle_redrive,
    feature=FEATURE_REDRIVE,
)

COMMAND: Final[Command] = Command(
    "redrive",
    -2,
    ("write", "denyoom", "fast"),
    redrive,
    "queues",
    "Moves the jobs of a queue back to the queues that they come from.",
    "queue [TO queue] [COUNT n] [RATE n] [REASON glob] [OLDER sec] | queue STATUS | queue CANCEL",
    "O(1); then each job costs a move",
    queues=_queues,
    audited=always,
    categories=("queueadmin",),
)
