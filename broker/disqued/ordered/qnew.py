"""QNEW: makes an ordered queue.

The queue is an entry in the catalog. The reply comes when its group has a leader and the other nodes know it, so jobs
can be added at once at any node. The same QNEW again is OK, also if the first one was not answered; other options for a
queue that exists are refused.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.clients.session import Session
from disqued.core.commands.command import Command
from disqued.core.commands.scope import first_word
from disqued.core.queues.settings import MOST_NAME_BYTES
from disqued.core.runtime.audit import always
from disqued.core.runtime.state import NodeState
from disqued.errors import CommandSyntaxError, NotReplicated, QueueExists, ReplyError, shown
from disqued.ordered.catalog import CATALOG_GROUP, EXISTS, MAX_REPLICAS, QueueOptions, pack_create
from disqued.ordered.choosing import choose, default_count, first_leader
from disqued.ordered.exchange import node_of
from disqued.ordered.jobids import SALT_BYTES
from disqued.ordered.requests import COMMAND as CHANGE
from disqued.ordered.requests import PING
from disqued.ordered.room import OrderedRoom, ordered_of
from disqued.ordered.spread import reply_when_known
from disqued.ordered.waiting import OUTCOME_UNKNOWN, ClientRequest, Waiting
from disqued.resp.integers import parse_integer

TIMEOUT_MS: Final = 10_000
MOST_PREFETCH: Final = 65_535
BEATS_MS: Final = 2000
"""How long QNEW waits for reachable members that have not said which catalog they know."""


class QNew:
    """The options of one QNEW."""

    def __init__(self) -> None:
        self.replicas = 0
        """0 if not given."""
        self.single = False
        self.prefetch = 0
        self.nodes: list[bytes] = []
        """The nodes that must have replicas; none if they are chosen here."""
        self.force = False


def _number(word: bytes, name: str, most: int) -> int:
    value = parse_integer(word)
    if value is None or not 1 <= value <= most:
        raise ReplyError(f"ERR {name} must be between 1 and {most}")
    return value


def parse(args: list[bytes]) -> QNew:
    """The options behind the name of the queue. Raises ReplyError."""
    options = QNew()
    if args[2].upper() != b"ORDERED":
        raise ReplyError("ERR the type must be ORDERED; queues of jobs need no QNEW")
    index = 3
    while index < len(args):
        word = args[index].upper()
        value = args[index + 1] if index + 1 < len(args) else None
        if word == b"SINGLE":
            options.single = True
            index += 1
        elif word == b"FORCE":
            options.force = True
            index += 1
        elif word == b"REPLICAS" and value is not None:
            options.replicas = _number(value, "REPLICAS", MAX_REPLICAS)
            index += 2
        elif word == b"PREFETCH" and value is not None:
            options.prefetch = _number(value, "PREFETCH", MOST_PREFETCH)
            index += 2
        elif word == b"ON" and value is not None:
            options.nodes = args[index + 1 :]
            break
        else:
            raise CommandSyntaxError
    return options


def _choose(room: OrderedRoom, name: bytes, options: QNew) -> tuple[bytes, ...]:
    """The replicas of the queue. Raises ReplyError if there are too few nodes."""
    candidates = room.candidates()
    if options.nodes:
        nodes = dict.fromkeys(options.nodes)
        chosen = [candidate for candidate in candidates if node_of(candidate.replica) in nodes]
        if len(chosen) != len(nodes):
            known = {node_of(candidate.replica) for candidate in chosen}
            missing = next(node_id for node_id in nodes if node_id not in known)
            raise ReplyError(
                f"ERR node {shown(missing)} cannot have a replica: it cannot be reached or does not know the catalog"
            )
        if options.replicas and options.replicas != len(nodes):
            raise ReplyError(f"ERR REPLICAS is {options.replicas}, and ON names {len(nodes)} nodes")
        if len(nodes) > MAX_REPLICAS:
            raise ReplyError(f"ERR a queue has at most {MAX_REPLICAS} replicas")
        candidates = chosen
    count = len(candidates) if options.nodes else options.replicas or default_count(len(candidates))
    if count > len(candidates):
        raise ReplyError(f"ERR REPLICAS is {count}, and only {len(candidates)} nodes can have replicas now")
    return choose(name, candidates, count)


def _creation(room: OrderedRoom, name: bytes, options: QNew) -> bytes:
    """The change of the catalog that makes the queue. Raises ReplyError if there are too few nodes."""
    replicas = _choose(room, name, options)
    salt = room.state.host.random_bytes(SALT_BYTES)
    lead = first_leader(room.catalog, replicas)
    queue_options = QueueOptions(single=options.single, prefetch=options.prefetch)
    return pack_create(name, queue_options, replicas, lead, salt)


def require_catalog(room: OrderedRoom) -> None:
    """Raise ReplyError unless the catalog can be changed here."""
    if not room.has_catalog:
        raise ReplyError("ERR there is no catalog of ordered queues: CLUSTER ORDERED INIT founds one")
    if room.conflict:
        raise QueueExists(f"two catalogs met in this cluster: {room.catalog.identity.hex()} and {room.conflict.hex()}")


class _Create(ClientRequest):
    """Enters the queue into the catalog."""

    def __init__(self, room: OrderedRoom, waiting: Waiting, queue: bytes, data: bytes, deadline_ms: i64) -> None:
        super().__init__(room, waiting, queue, CHANGE, data, deadline_ms, repeated=True)

    def done(self, result: bytes) -> None:
        """Wait until the group has a leader."""
        if result == EXISTS:
            self.waiting.finish(QueueExists(f"queue {shown(self.queue)} has just been made by somebody else").encode())
            return
        await_leader(self.room, self.waiting, self.queue, self.deadline_ms)


class _FirstLeader(ClientRequest):
    """Asks whether the group has a leader."""

    def __init__(self, room: OrderedRoom, waiting: Waiting, queue: bytes, deadline_ms: i64) -> None:
        # Without its own `__init__`, an instance of a compiled class never leaves the memory if the class inherits one.
        super().__init__(room, waiting, queue, PING, b"", deadline_ms, repeated=True)

    def done(self, result: bytes) -> None:  # noqa: ARG002 - it says nothing
        """The queue can be used, as soon as the other nodes know it."""
        reply_when_known(self.room, self.waiting)


class _Unplaced:
    """Chooses the replicas when all reachable members have said which catalog they know, or after a time.

    Soon after the catalog was founded, or after the cluster was started, there would be too few to choose from.
    """

    def __init__(self, room: OrderedRoom, waiting: Waiting, queue: bytes, options: QNew, deadline_ms: i64) -> None:
        self._room = room
        self._waiting = waiting
        self._queue = queue
        self._options = options
        self._deadline_ms: i64 = deadline_ms
        self._until_ms: i64 = room.state.now_ms + BEATS_MS

    def look(self) -> bool:
        """Make the queue; False if it is too early."""
        room = self._room
        if self._waiting.session.closed:
            return True
        if room.misses_beats and room.state.now_ms < self._until_ms:
            return False
        try:
            data = _creation(room, self._queue, self._options)
        except ReplyError as error:
            self._waiting.finish(error.encode())
            return True
        create = _Create(room, self._waiting, self._queue, data, self._deadline_ms)
        room.clients.client(CATALOG_GROUP).submit(create)
        return True


class _Known:
    """Waits until the catalog here has a queue."""

    def __init__(self, room: OrderedRoom, waiting: Waiting, queue: bytes, deadline_ms: i64) -> None:
        self._room = room
        self._waiting = waiting
        self._queue = queue
        self._deadline_ms: i64 = deadline_ms

    def look(self) -> bool:
        """Ask for the leader if the queue is known; False if it is not."""
        room = self._room
        queue = room.catalog.by_name.get(self._queue)
        if queue is None:
            if room.state.now_ms >= self._deadline_ms:
                self._waiting.finish(NotReplicated(OUTCOME_UNKNOWN).encode())
                return True
            return self._waiting.session.closed
        ping = _FirstLeader(room, self._waiting, self._queue, self._deadline_ms)
        room.clients.client(queue.group).submit(ping)
        return True


def await_leader(room: OrderedRoom, waiting: Waiting, queue: bytes, deadline_ms: i64) -> None:
    """Reply OK when the group of a queue has a leader, and the other nodes know the queue."""
    look = _Known(room, waiting, queue, deadline_ms).look
    if not look():
        room.waits.append(look)


def qnew(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Make a queue, and reply OK when it can be used."""
    name = args[1]
    options = parse(args)
    room = ordered_of(state)
    if not 0 < len(name) <= MOST_NAME_BYTES:
        raise ReplyError(f"ERR the name of a queue must have 1 to {MOST_NAME_BYTES} bytes")
    require_catalog(room)
    deadline_ms: i64 = state.now_ms + TIMEOUT_MS
    known = room.catalog.by_name.get(name)
    if known is not None:
        same = known.options.single == options.single and known.options.prefetch == options.prefetch
        if not same or (options.replicas and options.replicas != known.count):
            raise QueueExists(f"queue {shown(name)} exists with other options")
        waiting = Waiting(state, session, 0)
        waiting.begin()
        await_leader(room, waiting, name, deadline_ms)
        return
    _require_free(state, name, force=options.force)
    if not room.misses_beats:
        data = _creation(room, name, options)
        waiting = Waiting(state, session, 0)
        waiting.begin()
        room.clients.client(CATALOG_GROUP).submit(_Create(room, waiting, name, data, deadline_ms))
        return
    waiting = Waiting(state, session, 0)
    waiting.begin()
    room.waits.append(_Unplaced(room, waiting, name, options, deadline_ms).look)


def _require_free(state: NodeState, name: bytes, *, force: bool) -> None:
    """Raise ReplyError if there are jobs under this name, or members that would add some."""
    queue = state.lifecycle.queues.get(name)
    if queue is not None and queue.length + queue.leased + queue.delayed + queue.held > 0:
        raise QueueExists(f"queue {shown(name)} is a queue of jobs here; choose another name, or drain it first")
    for peer in state.view.peers.values():
        if not peer.in_handshake and not peer.features & kinds.FEATURE_ORDERED and not force:
            raise ReplyError(
                f"ERR node {peer.id.decode()} does not know ordered queues, and its clients would add other jobs under "
                "this name; upgrade it, or add FORCE"
            )


COMMAND: Final[Command] = Command(
    "qnew",
    -3,
    ("write", "denyoom"),
    qnew,
    "queues",
    "Makes an ordered queue.",
    "queue ORDERED [REPLICAS n] [SINGLE] [PREFETCH n] [FORCE] [ON node-id ...]",
    "O(nodes)",
    queues=first_word,
    audited=always,
    categories=("queueadmin",),
)
