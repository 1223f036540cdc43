"""Which queues are bound to an exchange, as all processes know it.

The broker has queues and no exchanges, so messages are routed by the process that publishes them. It must know the
bindings that other processes have declared: the queue of each worker for remote control, the queue for the replies to
`celery inspect`, the queue of Flower for events, and the queues of programs that publish to an exchange by its name.

A binding is a small job in the queue `kombu.bindings.<exchange>`, which nobody consumes. The process that declared it
adds it on every node, so a publisher finds all bindings with one QPEEK at its own node. It adds the job again before it
expires, and on nodes that join or return. Bindings of temporary queues last two minutes, so they end with a process
that is killed; those of other queues last 30 days after the last process that declared them. A temporary queue is one
that its consumer declared as exclusive, as deleted automatically, or with an expiry.

The usual binding of Celery is not written down: of a queue to a direct exchange of the same name, with this name as
routing key.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from disqued.client import Client, DisqueError, JobId, NoPermission, NoSuchJob

log = logging.getLogger("disqued.kombu")

PREFIX: Final = "kombu.bindings."
"""The name of the queue with the bindings of an exchange begins so."""

MOST_BINDINGS: Final = 10_000
"""The most bindings of one exchange that a publisher sees."""

CHECK_S: Final = 5.0
"""How often to look for nodes that do not have the bindings of this process."""

GONE_PRIORITY: Final = 100
"""The priority in HELLO of a node that failed or leaves."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long a binding is known after it was added, and how often it is added again, in seconds."""

    ttl_s: int
    again_s: int


TEMPORARY: Final = Lifetime(120, 40)
LASTING: Final = Lifetime(30 * 86_400, 5 * 86_400)


@dataclass(frozen=True, slots=True)
class Binding:
    """A queue that gets the messages of an exchange with this routing key."""

    exchange: str
    queue: str
    routing_key: str
    temporary: bool

    @property
    def lifetime(self) -> Lifetime:
        """How long it is known."""
        return TEMPORARY if self.temporary else LASTING

    def encode(self) -> str:
        """Return the body of its job."""
        return json.dumps({"queue": self.queue, "routing_key": self.routing_key, "temporary": self.temporary})


@dataclass(slots=True)
class Written:
    """A binding on one node: its job, and when to add it again, in seconds of the monotonic clock."""

    job_id: JobId
    again_s: float


@dataclass(slots=True)
class NodeBindings:
    """A node, and what was written there."""

    client: Client
    written: dict[Binding, Written] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Known:
    """The bindings of an exchange that a node knew at a time."""

    found: tuple[Binding, ...]
    read_s: float


class Bindings:
    """The bindings that this connection has declared, and those that it finds at its node."""

    def __init__(self, client: Client, client_of: Callable[[str], Client], *, discover: bool) -> None:
        """`client_of` makes a client of the node at an address."""
        self._client = client
        self._client_of = client_of
        self._discover = discover
        self._lock = threading.Lock()
        self._own: dict[Binding, None] = {}
        self._nodes: dict[str, NodeBindings] = {}
        self._known: dict[str, Known] = {}
        self._temporary: set[str] = set()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    # Publishing.

    def of(self, exchange: str, longest_s: float) -> list[Binding]:
        """Return the bindings of an exchange that are not known longer than so many seconds."""
        known = self._known.get(exchange)
        if known is None or time.monotonic() - known.read_s > longest_s:
            known = Known(tuple(self._read(exchange)), time.monotonic())
            self._known[exchange] = known
            self._temporary.update(binding.queue for binding in known.found if binding.temporary)
        own = [binding for binding in list(self._own) if binding.exchange == exchange]
        return list(dict.fromkeys((*own, *known.found)))

    def _read(self, exchange: str) -> Iterable[Binding]:
        try:
            jobs = self._client.qpeek(PREFIX + exchange, MOST_BINDINGS)
        except NoPermission as error:
            log.debug("bindings of other processes are not visible exchange=%r error=%r", exchange, str(error))
            return
        for job in jobs:
            try:
                content = json.loads(job.body)
                yield Binding(exchange, content["queue"], content["routing_key"], content["temporary"])
            except (ValueError, KeyError, TypeError):
                log.warning("job is no binding queue=%r job=%s", job.queue, job.id)

    def is_temporary(self, queue: str) -> bool:
        """Whether messages to this queue end with its consumer."""
        return queue in self._temporary

    # Consuming.

    def declare(self, binding: Binding) -> None:
        """Tell all nodes a binding, and again until it is withdrawn.

        Raises:
            DisqueError: the node in use cannot be told.
        """
        if binding.temporary:
            self._temporary.add(binding.queue)
        with self._lock:
            self._own[binding] = None
            self._write_missing()
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep, name="disqued.kombu.bindings", daemon=True)
                self._thread.start()

    def withdraw(self, queue: str) -> None:
        """The queue is bound to nothing any more."""
        with self._lock:
            gone = [binding for binding in self._own if binding.queue == queue]
            for binding in gone:
                del self._own[binding]
                self._known.pop(binding.exchange, None)
            for node in self._nodes.values():
                ids = [node.written.pop(binding).job_id for binding in gone if binding in node.written]
                if ids:
                    _try("a binding stays until it expires", node.client.ack, *ids)

    def _keep(self) -> None:
        while not self._ended.wait(CHECK_S):
            with self._lock:
                _try("bindings could not be renewed", self._write_missing)

    def _write_missing(self) -> None:
        now_s = time.monotonic()
        for node in self._live_nodes():
            for binding in self._own:
                written = node.written.get(binding)
                if written is None or written.again_s <= now_s:
                    _try("a node does not know a binding", self._write, node, binding)

    def _write(self, node: NodeBindings, binding: Binding) -> None:
        lifetime = binding.lifetime
        text = binding.encode()
        slot = int(time.time()) // lifetime.again_s
        job_id = node.client.add(
            PREFIX + binding.exchange,
            text,
            replicate=1,
            retry_s=lifetime.ttl_s,
            ttl_s=lifetime.ttl_s,
            key=None if binding.temporary else f"{text}{slot}",
            until=None if binding.temporary else "done",
        )
        before = node.written.get(binding)
        node.written[binding] = Written(job_id, time.monotonic() + lifetime.again_s)
        if before is not None and binding.temporary:
            node.client.ack(before.job_id)

    def _live_nodes(self) -> list[NodeBindings]:
        """The nodes that can be told, the one in use first."""
        hello = self._client.hello()
        addresses = {hello.node_id: str(self._client.node)}
        if self._discover:
            for node in hello.nodes:
                if node.id != hello.node_id and node.host and node.port and node.priority < GONE_PRIORITY:
                    host = f"[{node.host}]" if ":" in node.host else node.host
                    addresses[node.id] = f"{host}:{node.port}"
        for node_id in [known for known in self._nodes if known not in addresses]:
            self._nodes.pop(node_id).client.close()
        for node_id, address in addresses.items():
            if node_id not in self._nodes:
                self._nodes[node_id] = NodeBindings(self._client_of(address))
        return [self._nodes[node_id] for node_id in addresses]

    def close(self) -> None:
        """Renew nothing any more."""
        self._ended.set()
        thread = self._thread
        if thread is not None:
            thread.join()
        for node in self._nodes.values():
            node.client.close()
        self._nodes.clear()

    def forget(self) -> None:
        """Close the sockets of the parent, in a child process."""
        for node in list(self._nodes.values()):
            node.client.close()


def _try(problem: str, call: Callable[..., object], *arguments: object) -> None:
    """Make a call whose failure does no lasting harm."""
    try:
        call(*arguments)
    except NoSuchJob:
        return
    except DisqueError as error:
        log.warning("%s error=%r", problem, str(error))
