"""The sockets of the cluster bus: accepts connections of other nodes, opens links to them, resolves names.

Opening a link never blocks the node. Links to nodes that are down are retried ten times a second with the garbage
collector off, so that path raises no exceptions: they would leave reference cycles.

A connection that another program opens has `cluster-node-timeout` to become that of a node. When there are too many
connections, those that are not yet give way to new ones, so that programs which prove nothing cannot keep members out.

With `tls-cluster optional`, nodes with and without TLS connect: a link is opened without TLS when its handshake fails.
With `tls-cluster`, a link is connected when its handshake is done and, if this node opened it, the certificate fits the
peer. The certificates of nodes that connect to this one are compared with what they announce (`membership.certified`).
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Coroutine, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from disqued.core.clients.origin import origin_of_ip
from disqued.core.cluster.peer import Link
from disqued.core.telemetry.loglimit import LogLimit
from disqued.membership.certified import fits, why_refused
from disqued.membership.refusing import log_node
from disqued.server.certificates import Certificates
from disqued.server.listener import Accepting, serve
from disqued.server.network import Network
from disqued.server.peerlink import PeerLink
from disqued.server.replacing import COMPARED, oldest_of_busiest
from disqued.server.shell import Shell
from disqued.server.tlsport import HANDSHAKE_S, TlsPort, reason

Address: TypeAlias = tuple[Any, ...]
"""An address of the socket module: host and port, and for IPv6 also flow and scope."""


class _Unadmitted(NamedTuple):
    """A connection that does not belong to a node yet."""

    origin: str
    deadline: asyncio.TimerHandle


class Bus(Network):
    """Everything between the links of one node and the operating system."""

    def __init__(
        self,
        shell: Shell,
        loop: asyncio.AbstractEventLoop,
        certificates: Certificates | None = None,
        count_failed: Callable[[], None] = lambda: None,
    ) -> None:
        """Open no sockets yet. `certificates` is None without TLS; `count_failed` counts a failed handshake."""
        shell.network = self
        self._shell = shell
        self._loop = loop
        self._certificates = certificates
        self._count_failed = count_failed
        self._most_incoming = 0
        self._incoming = 0
        self._log_limit = LogLimit(1)
        """Bounds the log lines about too many connections."""
        self._unadmitted: dict[PeerLink, _Unadmitted] = {}
        """Connections that other programs opened, the oldest first. They stay here when they become those of a node,
        until that is noticed."""
        self._links: dict[PeerLink, None] = {}
        """Connected links."""
        self._sources: dict[int, Address] = {}
        """The address that links are opened from, by family."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._lookups: set[bytes] = set()
        """Names that are being resolved."""
        self._ending = False

    async def listen(self, sockets: Sequence[socket.socket], most_incoming: int) -> list[Accepting]:
        """Accept up to `most_incoming` connections of other nodes on listening sockets.

        If `cluster-bind` or `bind` names addresses, links are opened from the first one of each family, from which
        other nodes learn this node's address.
        """
        self._most_incoming = most_incoming
        config = self._shell.node.state.config
        if config.bus_addresses:
            for sock in reversed(sockets):
                host, _, *scope = sock.getsockname()
                self._sources[sock.family] = (host, 0, *scope)
        if self._certificates is None:
            return await serve(list(sockets), self._accept, config.tcp_backlog)
        settings = self._certificates.bus_accept_settings
        return [
            TlsPort(
                list(sockets),
                settings,
                self._accept,
                self._free,
                self._handshake_failed,
                self._longest_handshake_s,
                self._accepts_plain,
            )
        ]

    def _accept(self) -> PeerLink:
        return PeerLink(self._shell, Link(None, self._shell.clock.now_ms()), self._made, self._lost)

    # --- links that are connected -------------------------------------------------------------------------------------

    def _free(self) -> int:
        """How many more connections of other nodes are allowed."""
        return self._most_incoming - self._incoming

    def _made(self, carrier: PeerLink) -> bool:
        """Register a connected link; False to refuse it."""
        if not self._fits(carrier.link):
            return False
        if carrier.link.peer is None:
            origin = origin_of_ip(carrier.link.remote_ip.decode())
            if self._ending or not self._has_room(origin):
                return False
            self._incoming += 1
            timeout_s = self._shell.node.state.config.cluster_node_timeout / 1000
            self._unadmitted[carrier] = _Unadmitted(
                origin, self._loop.call_later(timeout_s, self._expect_node, carrier)
            )
        self._links[carrier] = None
        return True

    def _fits(self, link: Link) -> bool:
        """Whether the certificate of a node that this one dialled fits it; otherwise it is not told anything."""
        peer, names = link.peer, link.names
        if peer is None or names is None:
            return True
        state = self._shell.node.state
        link.names = None
        if fits(state, names, peer.host, peer.ip):
            return True
        log_node(state, "A node", link.remote_ip.decode(), f"is refused: {why_refused(names, peer.host, peer.ip)}")
        return False

    def _has_room(self, newest: str) -> bool:
        """Whether one more connection is allowed, if need be in place of one that does not belong to a node."""
        if self._incoming < self._most_incoming:
            return True
        limit = self._most_incoming
        victim = self._oldest_unadmitted(newest)
        if victim is None:
            self._log_rarely(f"Refusing connections to the bus port: connection limit of {limit} reached")
            return False
        self._log_rarely(
            f"Closing connections to the bus port that belong to no node: connection limit of {limit} reached"
        )
        self._close(victim)
        return True

    def _log_rarely(self, text: str) -> None:
        if self._log_limit.allows(text, self._shell.clock.now_ms()):
            self._log("warning", text)

    def _oldest_unadmitted(self, newest: str) -> PeerLink | None:
        """The connection that gives way to one that comes from `newest`; None if all belong to nodes."""
        while self._unadmitted:
            oldest = list(islice(self._unadmitted.items(), COMPARED))
            compared = {carrier: waiting.origin for carrier, waiting in oldest if not carrier.link.sender}
            if compared:
                return oldest_of_busiest(compared, newest)
            for carrier, _ in oldest:
                self._stop_waiting(carrier)
        return None

    def _expect_node(self, carrier: PeerLink) -> None:
        """Close a connection that does not belong to a node yet."""
        self._stop_waiting(carrier)
        if not carrier.link.sender:
            who = carrier.name()
            self._log("verbose", f"Closing the bus link with {who}: no node was admitted within cluster-node-timeout.")
            self._close(carrier)

    def _stop_waiting(self, carrier: PeerLink) -> None:
        """Cancel the timer of a connection, which would keep it in memory."""
        waiting = self._unadmitted.pop(carrier, None)
        if waiting is not None:
            waiting.deadline.cancel()

    def _close(self, carrier: PeerLink) -> None:
        self._lost(carrier)
        self._shell.node.link_closed(carrier.link, self._shell.clock.now_ms())
        carrier.close()

    def _lost(self, carrier: PeerLink) -> None:
        """Remove a link that was lost or never connected."""
        self._stop_waiting(carrier)
        if carrier in self._links:
            del self._links[carrier]
            self._incoming -= carrier.link.peer is None

    # --- opening ------------------------------------------------------------------------------------------------------

    def dial(self, link: Link) -> None:
        """Open a link. What is written to it meanwhile is sent once it is connected."""
        carrier = PeerLink(self._shell, link, self._made, self._lost)
        self._do(self._dial(carrier))

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _dial(self, carrier: PeerLink) -> None:
        peer = carrier.link.peer
        assert peer is not None, "only links to peers are dialled"
        host, port = peer.target, peer.bus_port
        protocol: asyncio.Protocol = carrier  # type: ignore[assignment]
        why = "the name has no address"
        for family, address in await self._resolve(host, port):
            sock, why = await self._connect(family, address)
            if sock is not None:
                why = await self._open(protocol, sock, str(address[0]))
                if why and self._accepts_plain():
                    why = await self._open_plain(protocol, family, address)
                if not why:
                    return
                break
        where = f"{host.decode('utf-8', 'replace')}:{port}"
        self._log("debug", f"Can't connect to node {carrier.name()} at {where}: {why}")
        carrier.failed()

    async def _connect(self, family: int, address: Address) -> tuple[socket.socket | None, str]:
        """A connected socket, or the reason why there is none."""
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            if family in self._sources:
                sock.bind(self._sources[family])
            error = sock.connect_ex(address)
            if error == errno.EINPROGRESS:
                error = await self._wait_connected(sock)
        except OSError as failed:
            error = failed.errno or errno.EIO
        except BaseException:
            sock.close()
            raise
        if not error:
            return sock, ""
        sock.close()
        return None, os.strerror(error)

    async def _wait_connected(self, sock: socket.socket) -> int:
        """Wait for the connection, at most `cluster-node-timeout`; returns the error number, 0 if it succeeded."""
        loop = self._loop
        outcome: asyncio.Future[bool] = loop.create_future()
        timeout_s = self._shell.node.state.config.cluster_node_timeout / 1000
        timer = loop.call_later(timeout_s, _settle, outcome, False)
        loop.add_writer(sock, _settle, outcome, True)
        try:
            writable = await outcome
        finally:
            loop.remove_writer(sock)
            timer.cancel()
        return sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if writable else errno.ETIMEDOUT

    async def _open(self, protocol: asyncio.Protocol, sock: socket.socket, address: str) -> str:
        """Make a connected socket a link, with TLS after a handshake; returns why that failed, empty if it did not."""
        if self._certificates is None:
            await self._loop.create_connection(lambda: protocol, sock=sock)
            return ""
        try:
            await self._loop.create_connection(
                lambda: protocol,
                sock=sock,
                ssl=self._certificates.bus_dial_settings(),
                server_hostname="",
                ssl_handshake_timeout=self._longest_handshake_s(),
            )
        except OSError as error:
            why = reason(error)
            self._handshake_failed(address, why)
            return why
        return ""

    async def _open_plain(self, protocol: asyncio.Protocol, family: int, address: Address) -> str:
        """Open a link without TLS to a node that has none; returns why that failed."""
        sock, why = await self._connect(family, address)
        if sock is not None:
            await self._loop.create_connection(lambda: protocol, sock=sock)
        return why

    def _accepts_plain(self) -> bool:
        return self._shell.node.state.config.tls_cluster == "optional"

    def _longest_handshake_s(self) -> float:
        return min(self._shell.node.state.config.cluster_node_timeout / 1000, HANDSHAKE_S)

    def _handshake_failed(self, address: str, why: str) -> None:
        self._count_failed()
        if self._accepts_plain():
            self._log("verbose", f"TLS handshake with the node at {address} failed: {why}")
            return
        log_node(
            self._shell.node.state,
            "A node",
            address,
            f"is refused, the TLS handshake failed: {why}. All nodes need tls-cluster yes, and certificates that are "
            "signed by an authority in tls-ca-cert-file.",
        )

    # --- names --------------------------------------------------------------------------------------------------------

    def look_up(self, name: bytes) -> None:
        """Resolve a name for the node, unless that is already in progress."""
        if name not in self._lookups:
            self._lookups.add(name)
            self._do(self._look_up(name))

    async def _look_up(self, name: bytes) -> None:
        found = await self._resolve(name, 0)
        self._lookups.discard(name)
        addresses = [str(address[0]).encode() for _, address in found]
        self._shell.node.found(name, addresses, self._shell.clock.now_ms())
        self._shell.settle()

    async def _resolve(self, host: bytes, port: int) -> list[tuple[int, Address]]:
        """Families and addresses of a name or a literal address; empty if it has none."""
        if not host:
            return []
        text = host.decode("utf-8", "replace")
        try:
            found = socket.getaddrinfo(text, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        except (OSError, UnicodeError):
            try:
                found = await self._loop.getaddrinfo(text, port, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError):  # the name may not be valid in the domain name system
                return []
        return list(dict.fromkeys((int(family), address) for family, _, _, _, address in found))

    # --- the end ------------------------------------------------------------------------------------------------------

    @property
    def connected(self) -> int:
        """How many links are connected."""
        return len(self._links)

    def end(self) -> None:
        """Open and accept no more links; each closes when the other node has read everything."""
        self._ending = True
        for task in list(self._tasks):
            task.cancel()
        for carrier in list(self._links):
            carrier.finish()

    def _log(self, level: str, text: str) -> None:
        self._shell.node.state.host.log(level, text)


def _settle(outcome: asyncio.Future[bool], result: bool) -> None:
    if not outcome.done():
        outcome.set_result(result)
