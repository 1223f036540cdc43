"""Executes calls: connections, authentication, choice of node, repetition. Shared by both clients.

Each call has a connection to itself while it runs, because a node replies in order and a blocked GETJOB would delay all
commands after it. Idle connections are kept for later calls. Errors are handled as follows:

- The command was not sent: try the other nodes, then wait and try again as the back-off says, then `ConnectionFailed`.
- The command was sent and no reply arrived: the same for calls that may be repeated; `ConnectionLost` for the others.
- The node is leaving: switch to another node, and repeat the call there if it may be repeated.
- The clock of the node is too far ahead (CLOCK): switch to another node and repeat the call there; it was not executed.
- Any other error reply is raised to the caller.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import AsyncGenerator, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from disqued.client import replies
from disqued.client.backoff import Backoff
from disqued.client.calls import Call, hello
from disqued.client.errors import (
    ClientClosed,
    ClockError,
    ConnectionFailed,
    ConnectionLost,
    DisqueError,
    Loading,
    NodeLeaving,
    ResponseError,
)
from disqued.client.nodes import Address, Nodes, own_addresses, parse_address, recommended
from disqued.client.transport import BrokenConnectionError, Link, Transport
from disqued.client.values import Hello
from disqued.client.wire import Reply

T = TypeVar("T")

PIPELINE_REQUESTS = 128
"""Requests in flight at once in a pipeline: enough to hide the round trip, few enough to hold in memory."""

REQUESTS_AHEAD = 2
"""Requests in flight in `perform_ahead`: the node works on one while the caller handles the reply to the one before."""

IDLE_LINKS_KEPT = 16

ONE_ATTEMPT = Backoff(attempts=1)

USE_ANOTHER = (NodeLeaving, ClockError)
"""Errors after which the client uses another node."""

BUSY = "ERR max number of clients reached"


@dataclass(frozen=True, slots=True)
class Settings:
    """The arguments of a client; `BaseClient` documents them."""

    nodes: Sequence[str]
    password: str | None
    discover: bool
    connect_timeout_s: float | None
    timeout_s: float | None
    backoff: Backoff
    rng: random.Random
    user: str | None = None


class Session:
    """The state of one client: known nodes and idle connections."""

    def __init__(self, settings: Settings, transport: Transport, closed: threading.Event | None = None) -> None:
        """Configure the session. Sessions with the same `closed` are closed together."""
        self.settings = settings
        self._transport = transport
        self._nodes = Nodes([parse_address(text) for text in settings.nodes], settings.rng)
        self._idle: list[Link] = []
        self._closed = closed or threading.Event()
        self._refused: set[Address] = set()
        """Addresses at which the node in use could not be reached although a shared address led to it."""

    @property
    def node(self) -> Address | None:
        """The node in use; None before the first call."""
        return self._nodes.current

    @property
    def node_id(self) -> str | None:
        """The ID of the node in use; None before the first call, and without `discover`."""
        return self._nodes.node_id

    def sibling(self) -> Session:
        """Return a session with connections of its own. It knows the same nodes, and chooses one itself."""
        known = dict.fromkeys((*self.settings.nodes, *map(str, self._nodes.order())))
        return Session(replace(self.settings, nodes=tuple(known)), self._transport, self._closed)

    def only_at(self, address: Address) -> Session:
        """Return a session that uses this node alone, whatever other nodes are known, and tries each call once."""
        alone = replace(self.settings, nodes=(str(address),), discover=False, backoff=ONE_ATTEMPT)
        return Session(alone, self._transport, self._closed)

    async def session_at(self, creator: str) -> Session | None:
        """Return a session like this one whose node in use is the one with this prefix of its ID.

        Returns None if the node in use does not know that node, suspects it or sees it leaving, or if it cannot be
        reached.
        """
        try:
            address = recommended(await self.perform(hello(), ONE_ATTEMPT), creator)
            other = self.sibling()
            return other if address is not None and await other.begin_at(address, creator) else None
        except DisqueError:
            return None

    async def begin_at(self, address: Address, creator: str) -> bool:
        """Connect to this node; False if it cannot be reached, is leaving, or has not this prefix of its ID."""
        await self._transport.acquire()
        try:
            link = await self._try_dial(address, {})
        finally:
            self._transport.release()
        if link is None:
            return False
        if not link.node_id.startswith(creator) or self._nodes.should_avoid(link.address):
            link.close()
            return False
        self._nodes.connected(link.address, link.node_id)
        self._keep(link)
        return True

    async def perform(self, call: Call[T], backoff: Backoff | None = None) -> T:
        """Execute one call and return its result. The docstring of the module says what it raises."""
        waits = (backoff or self.settings.backoff).waits_s(self.settings.rng)
        while True:
            [result] = await self._exchange([call], waits)
            if not isinstance(result, DisqueError):
                return call.decode(result)
            wait_s = next(waits, None) if _may_repeat(call, result) else None
            if wait_s is None:
                raise result
            await self._transport.sleep(wait_s)

    async def perform_many(self, calls: Iterable[Call[T]]) -> list[T | DisqueError]:
        """Execute calls in pipelines and return the result or error of each; an error concerns its own call only."""
        results: list[T | DisqueError] = []
        remaining = iter(calls)
        while batch := list(islice(remaining, PIPELINE_REQUESTS)):
            results.extend(await self._perform_batch(batch))
        return results

    async def _perform_batch(self, batch: Sequence[Call[T]]) -> list[T | DisqueError]:
        results: list[Reply | DisqueError] = [None] * len(batch)
        waits = self.settings.backoff.waits_s(self.settings.rng)
        pending = list(range(len(batch)))
        while pending:
            answers = await self._collect([batch[index] for index in pending], waits)
            for index, answer in zip(pending, answers, strict=True):
                results[index] = answer
            pending = [index for index in pending if _may_repeat(batch[index], results[index])]
            wait_s = next(waits, None) if pending else None
            if wait_s is None:
                break
            await self._transport.sleep(wait_s)
        return [_decoded(call, result) for call, result in zip(batch, results, strict=True)]

    async def _collect(self, calls: Sequence[Call[T]], waits: Iterator[float]) -> list[Reply | DisqueError]:
        """Like `_exchange`, but a failure to connect becomes the result of each call."""
        try:
            return await self._exchange(calls, waits)
        except ConnectionFailed as error:
            return [error] * len(calls)

    async def perform_ahead(self, calls: Iterable[Call[T]]) -> AsyncGenerator[T | DisqueError, None]:
        """Execute calls over one connection and yield the result or error of each, in order.

        A call is sent before the caller sees the result of the one before, so that the node and the caller work at the
        same time. `calls` may be endless: each is taken when it is sent. No call is repeated.

        Raises:
            ConnectionFailed: no node can be reached. Nothing was sent.
            ConnectionLost: the connection broke, or timed out, before the next reply.
        """
        remaining = iter(calls)
        waiting: deque[Call[T]] = deque()
        answers: deque[Reply] = deque()
        await self._transport.acquire()
        link: Link | None = None
        must_switch = False
        try:
            link = self._idle_link() or await self._connect(self.settings.backoff.waits_s(self.settings.rng))
            while True:
                fresh = list(islice(remaining, REQUESTS_AHEAD - len(waiting)))
                waiting += fresh
                if not waiting:
                    break
                try:
                    if fresh or not answers:
                        request = b"".join(call.encode() for call in fresh)
                        answers += await link.exchange(request, 0 if answers else 1, self._read_timeout_s(waiting))
                except BrokenConnectionError as error:
                    self._failed(link)
                    for answer in (*answers, *error.replies):
                        yield _decoded(waiting.popleft(), answer)
                    raise _lost(waiting[0], link.address, error) from error
                must_switch = must_switch or any(isinstance(answer, USE_ANOTHER) for answer in answers)
                yield _decoded(waiting.popleft(), answers.popleft())
            if must_switch:
                self._switch_node(link.address)
            self._keep(link)
            link = None
        finally:
            if link is not None:  # it is broken, or replies may still arrive that no other call may read
                link.close()
            self._transport.release()

    async def _exchange(self, calls: Sequence[Call[T]], waits: Iterator[float]) -> list[Reply | DisqueError]:
        """Return one reply or error for each call, over one connection."""
        await self._transport.acquire()
        try:
            link = self._idle_link() or await self._connect(waits)
            answers = await self._ask(link, calls)
        finally:
            self._transport.release()
        if any(isinstance(answer, USE_ANOTHER) for answer in answers):
            self._switch_node(link.address)
        return answers

    async def _ask(self, link: Link, calls: Sequence[Call[T]]) -> list[Reply | DisqueError]:
        request = b"".join(call.encode() for call in calls)
        try:
            answers = await link.exchange(request, len(calls), self._read_timeout_s(calls))
        except BrokenConnectionError as error:
            self._failed(link)
            lost = [_lost(call, link.address, error) for call in calls[len(error.replies) :]]
            return [*error.replies, *lost]
        except BaseException:  # a cancelled call: its reply may still arrive, and no other call may read it
            link.close()
            raise
        self._keep(link)
        return list(answers)

    def _read_timeout_s(self, calls: Iterable[Call[T]]) -> float | None:
        own = [call.wait_s for call in calls]
        if self.settings.timeout_s is None or None in own:
            return None
        return self.settings.timeout_s + max(wait_s or 0.0 for wait_s in own)

    # Connections.

    async def open_link(self, backoff: Backoff) -> Link:
        """Return a connection to the node in use that the caller has for itself, and closes.

        Raises:
            ConnectionFailed: no node can be reached.
        """
        return self._idle_link() or await self._connect(backoff.waits_s(self.settings.rng))

    def link_failed(self, link: Link) -> None:
        """Close a connection of the caller that broke; the next one may be to another node."""
        self._failed(link)

    def leave_node(self, link: Link) -> None:
        """Close a connection of the caller and use another node, because this one asked for that (`USE_ANOTHER`)."""
        link.close()
        self._switch_node(link.address)

    def use_another_node(self) -> None:
        """Leave the node in use, which comes last among the nodes to try."""
        address = self._nodes.current
        if address is not None:
            self._nodes.failed(address)
            self.drop_idle()

    def _idle_link(self) -> Link | None:
        if self._closed.is_set():
            raise ClientClosed("the client is closed")
        while (link := self._pop_idle()) is not None:
            if link.is_usable():
                return link
            link.close()
        return None

    def _pop_idle(self) -> Link | None:
        try:
            return self._idle.pop()
        except IndexError:  # another thread may take the last one between a check and the pop
            return None

    def _keep(self, link: Link) -> None:
        if self._closed.is_set() or len(self._idle) >= IDLE_LINKS_KEPT or not self._is_in_use(link):
            link.close()
        else:
            self._idle.append(link)

    def _is_in_use(self, link: Link) -> bool:
        return link.address == self._nodes.current and link.node_id in {"", self._nodes.node_id}

    def _failed(self, link: Link) -> None:
        link.close()
        self._nodes.failed(link.address)

    def _switch_node(self, address: Address) -> None:
        self._nodes.leaving(address)
        self.drop_idle()

    def drop_idle(self) -> None:
        """Close idle connections; the next call opens one."""
        while (link := self._pop_idle()) is not None:
            link.close()

    async def _connect(self, waits: Iterator[float]) -> Link:
        """Connect to the best reachable node; wait after each unsuccessful round through all nodes."""
        while True:
            problems: dict[Address, Exception] = {}
            link = await self._first_reachable(problems)
            if link is not None:
                self._nodes.connected(link.address, link.node_id or None)
                return link
            await self._wait_or_fail(waits, problems)

    async def _first_reachable(self, problems: dict[Address, Exception]) -> Link | None:
        """Try all nodes once, including nodes learned on the way; return a leaving node only if there is no other."""
        spare: Address | None = None
        while (address := self._untried({*problems, spare})) is not None:
            link = await self._try_dial(address, problems)
            if link is None:
                continue
            if spare is not None or not self._nodes.should_avoid(address):
                return link
            link.close()
            spare = address
        return await self._try_dial(spare, problems) if spare is not None else None

    def _untried(self, tried: Container[Address | None]) -> Address | None:
        return next((address for address in self._nodes.order() if address not in tried), None)

    async def _try_dial(self, address: Address, problems: dict[Address, Exception]) -> Link | None:
        try:
            return await self._dial(address)
        except (OSError, Loading) as error:
            self._nodes.failed(address)
            problems[address] = error
            return None

    async def _wait_or_fail(self, waits: Iterator[float], problems: dict[Address, Exception]) -> None:
        wait_s = next(waits, None)
        if wait_s is None:
            reasons = "; ".join(f"{address}: {_reason(error)}" for address, error in problems.items())
            raise ConnectionFailed(f"cannot connect to any node ({reasons})")
        await self._transport.sleep(wait_s)

    async def _dial(self, address: Address) -> Link:
        """Return an authenticated connection, after its node has listed the nodes that it knows."""
        in_use = self._nodes.node_id if address == self._nodes.current else None
        link, found = await self._greet(address)
        if found is not None:
            if in_use not in {None, found.node_id}:
                link, found = await self._at_node(in_use, link, found)
            self._nodes.learn(link.address, found)
        return link

    async def _greet(self, address: Address) -> tuple[Link, Hello | None]:
        link = await self._transport.dial(address, self.settings.connect_timeout_s)
        try:
            return link, await self._handshake(link)
        except BaseException:
            link.close()
            raise

    async def _handshake(self, link: Link) -> Hello | None:
        handshake: list[Call[Reply]] = []
        if self.settings.password is not None:
            user = () if self.settings.user is None else (self.settings.user,)
            handshake.append(Call(("AUTH", *user, self.settings.password), replies.raw))
        if self.settings.discover:
            handshake.append(Call(hello().arguments, replies.raw))
        for call in handshake:
            [answer] = await link.exchange(call.encode(), 1, self.settings.connect_timeout_s)
            if isinstance(answer, ResponseError):
                if str(answer).startswith(BUSY):
                    raise ConnectionRefusedError(str(answer))
                raise answer
            if call.name == "HELLO":
                found = replies.hello(answer)
                link.node_id = found.node_id
                return found
        return None

    async def _at_node(self, node_id: str, link: Link, found: Hello) -> tuple[Link, Hello]:
        """Replace a connection that led to another node than the one in use, because several nodes share the address.

        Jobs are renewed and returned at the node that delivered them, so the session stays with it: it connects to the
        node's own address, as the other node tells it, or to the node's port on the shared host.
        """
        for address in own_addresses(node_id, link.address, found):
            if address in self._refused:
                continue
            try:
                direct, answer = await self._greet(address)
            except (OSError, DisqueError):
                self._refused.add(address)
                continue
            if answer is not None and answer.node_id == node_id:
                link.close()
                return direct, answer
            self._refused.add(address)
            direct.close()
        return link, found

    def close(self) -> None:
        """Close idle connections now and the others when their calls end."""
        self._closed.set()
        self.drop_idle()


def _may_repeat(call: Call[T], result: Reply | DisqueError) -> bool:
    if isinstance(result, Loading | ClockError):
        return True  # refused before it ran
    return call.repeat and isinstance(result, ConnectionLost | NodeLeaving)


def _decoded(call: Call[T], result: Reply | DisqueError) -> T | DisqueError:
    if isinstance(result, DisqueError):
        return result
    try:
        return call.decode(result)
    except DisqueError as error:
        return error


def _lost(call: Call[T], address: Address, error: Exception) -> ConnectionLost:
    return ConnectionLost(f"no reply to {call.name} from {address}: {_reason(error)}; it may have been executed")


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
