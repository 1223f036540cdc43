"""The result backend: what actors return, under the IDs of their messages, in result jobs of the cluster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from dramatiq.encoder import Encoder
from dramatiq.message import Message
from dramatiq.results.backend import DEFAULT_TIMEOUT, Missing, ResultBackend
from dramatiq.results.errors import ResultMissing, ResultTimeout
from dramatiq.results.result import wrap_exception, wrap_result

from disqued.client import Client, ResultJobs, ResultTooLong
from disqued.dramatiq.connection import Closing, PerProcess, client_maker, connection_errors

NAMESPACE: Final = "dramatiq-results"


class DisqueBackend(ResultBackend, Closing):
    """A result backend on a cluster of this broker.

    Waiting for a result does not poll. A result has at most 64 KiB when it is encoded. The first result of a message
    stands; a failure is replaced by what a later run of the message returns.
    """

    def __init__(
        self,
        *,
        namespace: str = NAMESPACE,
        encoder: Encoder | None = None,
        use_namespace_prefix_keys: bool = False,
        url: str | Sequence[str] | None = None,
        client: Client | None = None,
        **options: Any,
    ) -> None:
        """Configure the backend; the first result connects.

        Args:
            namespace: The queue of the result jobs, which no worker reads.
            encoder: As for every backend.
            use_namespace_prefix_keys: As for every backend.
            url: The cluster, as for `DisqueBroker`.
            client: A client to use in place of one of its own. It must not be used before a fork and after.
            options: Arguments of `disqued.client.Client`, as for `DisqueBroker`.
        """
        super().__init__(namespace=namespace, encoder=encoder, use_namespace_prefix_keys=use_namespace_prefix_keys)
        self._clients = PerProcess(client_maker(url, options) if client is None else lambda: client)
        self._jobs = PerProcess(lambda: ResultJobs(self._clients.here, namespace))
        self._owns_client = client is None

    def close(self) -> None:
        """Close the connections, unless the backend was given a client."""
        if self._owns_client:
            self._clients.here.close()

    def get_result(self, message: Message[Any], *, block: bool = False, timeout: int | None = None) -> Any:
        """Return the result of a message. With `block`, wait for it up to `timeout` ms, 10 seconds by default.

        Raises:
            ResultMissing: there is none, and `block` is false; or there will be none.
            ResultTimeout: there is none in time.
            ResultFailure: the actor raised an exception.
            BrokerConnectionError: no node can be reached.
        """
        key = self.build_message_key(message)
        timeout_ms = DEFAULT_TIMEOUT if timeout is None else timeout
        with connection_errors():
            if block and timeout_ms > 0:
                found = self._jobs.here.wait([key], timeout_s=timeout_ms / 1000)
                if found.get(key) is not None:
                    return self._unwrap(self._decode(found[key]))
                if key in found:
                    raise ResultMissing(message)
            result = self._get(key)  # after a short wait, too: a node needs a moment to ask the others
        if result is Missing:
            raise ResultTimeout(message) if block else ResultMissing(message)
        return self._unwrap(result)

    def store_result(self, message: Message[Any], result: Any, ttl: int) -> None:
        """Keep what an actor returned for `ttl` ms, at most 30 days.

        Raises:
            ResultTooLong: it has more than 64 KiB. A program that waits for it gets this error, too.
        """
        try:
            self._store(self.build_message_key(message), wrap_result(result), ttl)
        except ResultTooLong as error:
            self.store_exception(message, error, ttl)
            raise

    def store_exception(self, message: Message[Any], exception: Exception, ttl: int) -> None:
        """Keep the exception of an actor, until a later run of the message has a result, as after a redrive."""
        self._keep(self.build_message_key(message), wrap_exception(exception), ttl, final=False)

    def _unwrap(self, result: Any) -> Any:
        return self.unwrap_result(result)  # type: ignore[no-untyped-call]

    def _get(self, message_key: str) -> Any:
        return self._decode(self._jobs.here.read([message_key]).get(message_key))

    def _store(self, message_key: str, result: Any, ttl: int) -> None:
        self._keep(message_key, result, ttl, final=True)

    def _keep(self, message_key: str, result: Any, ttl: int, *, final: bool) -> None:
        encoded = self.encoder.encode(result)
        with connection_errors():
            self._jobs.here.store(message_key, encoded, final=final, retain_s=math.ceil(ttl / 1000))

    def _decode(self, data: bytes | None) -> Any:
        return Missing if data is None else self.encoder.decode(data)
