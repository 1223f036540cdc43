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
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from disqued.client import Client, DisqueError, JobId, NoPermission
from disqued.kombu.nodeclients import NodeClients

log = logging.getLogger("disqued.kombu")

PREFIX: Final = "kombu.bindings."
"""The name of the queue with the bindings of an exchange begins so."""

MOST_BINDINGS: Final = 10_000
"""The most bindings of one exchange that a publisher sees."""

CHECK_S: Final = 5.0
"""How often to look for nodes that do not have the bindings of this process."""


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


@dataclass(frozen=True, slots=True)
class Known:
    """The bindings of an exchange that a node knew at a time."""

    found: tuple[Binding, ...]
    temporary: frozenset[str]
    """The queues among them that end with their consumers."""
    read_s: float


class Bindings:
    """The bindings that this connection has declared, and those that it finds at its node."""

    def __init__(self, client: Client, nodes: NodeClients) -> None:
        self._client = client
        self._nodes = nodes
        self._lock = threading.Lock()
        self._own: dict[Binding, None] = {}
        self._written: dict[str, dict[Binding, Written]] = {}
        """What this process has written on each node."""
        self._known: dict[str, Known] = {}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_cut_off = False

    # Publishing.

    def of(self, exchange: str, longest_s: float) -> list[Binding]:
        """Return the bindings of an exchange that are not known longer than so many seconds."""
        known = self._known.get(exchange)
        if known is None or time.monotonic() - known.read_s > longest_s:
            found = tuple(self._read(exchange))
            temporary = frozenset(binding.queue for binding in found if binding.temporary)
            known = Known(found, temporary, time.monotonic())
            self._known[exchange] = known
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
        return any(queue in known.temporary for known in list(self._known.values())) or any(
            binding.queue == queue and binding.temporary for binding in list(self._own)
        )

    # Consuming.

    def declare(self, binding: Binding) -> None:
        """Tell all nodes a binding, and again until it is withdrawn.

        Raises:
            ConnectionFailed: no node can be told.
        """
        with self._lock:
            self._own[binding] = None
            self._write_missing()
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep, name="disqued.kombu.bindings", daemon=True)
                self._thread.start()

    def withdraw(self, queue: str) -> None:
        """The queue is bound to nothing any more. A node that cannot be told knows the binding until it expires."""
        with self._lock:
            gone = [binding for binding in self._own if binding.queue == queue]
            if not gone:
                return
            for binding in gone:
                del self._own[binding]
                self._known.pop(binding.exchange, None)
            with suppress(DisqueError):
                for node_id, client in self._nodes.live().items():
                    written = self._written.get(node_id, {})
                    ids = [written.pop(binding).job_id for binding in gone if binding in written]
                    if ids:
                        _try("a binding stays until it expires", client.ack, *ids)

    def _keep(self) -> None:
        while not self._ended.wait(CHECK_S):
            try:
                with self._lock:
                    self._write_missing()
                self._is_cut_off = False
            except DisqueError as error:
                if not self._is_cut_off:
                    log.warning("bindings cannot be renewed error=%r", str(error))
                self._is_cut_off = True

    def _write_missing(self) -> None:
        now_s = time.monotonic()
        for node_id, client in self._nodes.live().items():
            written = self._written.setdefault(node_id, {})
            for binding in list(self._own):
                before = written.get(binding)
                if before is None or before.again_s <= now_s:
                    _try("a node does not know a binding", self._write, client, written, binding)

    def _write(self, client: Client, written: dict[Binding, Written], binding: Binding) -> None:
        lifetime = binding.lifetime
        text = binding.encode()
        slot = int(time.time()) // lifetime.again_s
        job_id = client.add(
            PREFIX + binding.exchange,
            text,
            replicate=1,
            retry_s=lifetime.ttl_s,
            ttl_s=lifetime.ttl_s,
            key=None if binding.temporary else f"{text}{slot}",
            until=None if binding.temporary else "done",
        )
        before = written.get(binding)
        written[binding] = Written(job_id, time.monotonic() + lifetime.again_s)
        if before is not None and binding.temporary:
            client.ack(before.job_id)

    def close(self) -> None:
        """Renew nothing any more."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()


def _try(problem: str, call: Callable[..., object], *arguments: object) -> None:
    """Make a call whose failure does no lasting harm."""
    try:
        call(*arguments)
    except DisqueError as error:
        log.warning("%s error=%r", problem, str(error))
