"""What the blocking and the asyncio client have in common: construction, and the node in use."""

from __future__ import annotations

import functools
import random
import ssl
from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, ParamSpec, Protocol, TypeVar, overload

from disqued.client.backoff import Backoff
from disqued.client.session import Session, Settings
from disqued.client.transport import Transport
from disqued.client.urls import parse_nodes

C = TypeVar("C")
P = ParamSpec("P")
R = TypeVar("R")
X = TypeVar("X")


class TransportFactory(Protocol):
    """Makes the transport of a client."""

    def __call__(self, max_connections: int, tls: ssl.SSLContext | None, tls_server_name: str | None) -> Transport:
        """Return a transport that runs at most `max_connections` calls at once; `BaseClient` documents the others."""


class BaseClient:
    """The base of `Client` and `AsyncClient`."""

    make_transport: ClassVar[TransportFactory]

    def __init__(
        self,
        nodes: Sequence[str] = ("localhost:7711",),
        *,
        user: str | None = None,
        password: str | None = None,
        tls: bool | ssl.SSLContext = False,
        tls_server_name: str | None = None,
        discover: bool = True,
        connect_timeout_s: float | None = 2.0,
        timeout_s: float | None = 5.0,
        max_connections: int = 64,
        backoff: Backoff | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """Configure the client; the first call connects.

        Args:
            nodes: Addresses to start with: `host:port`, `[ipv6]:port`, the path of a unix socket, or a URL
                `disque://[user:password@]host[:port][,host[:port]...]`, with `disques://` for TLS. Such a URL may end
                with options, `?cafile=/etc/ca.pem&server_name=disque`: `cafile`, `certfile`, `keyfile` and `insecure`
                (`yes` or `no`) of `tls_context`, and `server_name`, which is `tls_server_name`.
            user: Sent with the password; None for the default user.
            password: Sent with AUTH on every new connection.
            tls: Whether to use TLS, or the settings for it (see `tls_context`). True verifies the nodes with the
                authorities of the system. A `disques://` URL means True, with its options. Settings win over the URL.
            tls_server_name: The name that the certificates of all nodes must be valid for, for example behind a tunnel;
                None for the host of each address.
            discover: Ask each node for the other nodes with HELLO, and use them, too. Without it, the client sends only
                the commands of the caller, and the password.
            connect_timeout_s: Timeout for opening one connection; None means no timeout.
            timeout_s: How long to wait for data from the node, in addition to the time that the command itself may
                block (`timeout_ms` of `add` and `get`); None means no timeout.
            max_connections: How many calls can run at once; further calls wait. A blocked `get` counts.
            backoff: Number of attempts, and waits between them, when no node can be reached.
            rng: Random numbers for the choice of node and the waits.

        Raises:
            ValueError: an address is invalid, or `nodes` is empty.
            OSError: a file that the URL names cannot be used.
            TypeError: `nodes` is a single string.
        """
        if isinstance(nodes, str):
            raise TypeError(f"nodes must be a list of addresses, not a string; write [{nodes!r}]")
        target = parse_nodes(nodes)
        settings = Settings(
            nodes=target.nodes,
            user=target.user if user is None else user,
            password=target.password if password is None else password,
            discover=discover,
            connect_timeout_s=connect_timeout_s,
            timeout_s=timeout_s,
            backoff=backoff or Backoff(),
            rng=rng or random.Random(),  # noqa: S311 (spreads load, protects no secret)
        )
        context = tls if isinstance(tls, ssl.SSLContext) else target.tls_context() if tls or target.tls else None
        server_name = tls_server_name or target.tls_options.server_name
        self._session = Session(settings, self.make_transport(max_connections, context, server_name))

    @property
    def node(self) -> str | None:
        """The address of the node in use; None before the first call and after a failure."""
        address = self._session.node
        return None if address is None else str(address)

    def use_another_node(self) -> None:
        """Use another node from the next call on, for example because this one is cut off from the others.

        Calls that are running are not disturbed. If no other node can be reached, the client returns to this one.
        """
        self._session.use_another_node()

    def session(self) -> Session:
        """Return a new session with the settings of this client, for adapters that execute calls themselves.

        It counts towards `max_connections`, and `close()` closes it, too.
        """
        return self._session.sibling()


class Method(Generic[C, P, R]):
    """A method of both clients: `build` turns the arguments into a call, `perform` executes the call.

    On an instance it is a bound method with the signature and documentation of `build`; on the class it is `build`.
    """

    def __init__(self, perform: Callable[[C, X], R], build: Callable[P, X]) -> None:
        def method(client: C, *args: P.args, **kwargs: P.kwargs) -> R:
            return perform(client, build(*args, **kwargs))

        self._build = build
        self._method = method
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, client: None, owner: type[C]) -> Callable[P, object]: ...
    @overload
    def __get__(self, client: C, owner: type[C]) -> Callable[P, R]: ...
    def __get__(self, client: C | None, owner: type[C]) -> Callable[P, object]:
        if client is None:
            return self._build
        method = functools.partial(self._method, client)
        return functools.update_wrapper(method, self._build)
