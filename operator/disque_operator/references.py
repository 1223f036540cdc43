"""Secrets that clusters refer to by name, and the watches that report their changes at once.

They have no label of the operator, so kopf's watch of labelled Secrets does not report them. A watch of all Secrets
would need the right to read all, and memory for all. Therefore each one has a watch by its name, which a role can grant
by `resourceNames`. It carries only metadata and wakes the clusters; rounds read the Secret itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncGenerator, Callable
from typing import Final, Protocol, TypeAlias

from disque_operator.apivalues import Json
from disque_operator.kube import EXPIRED, KubeError
from disque_operator.queue import Key
from disque_operator.resources.encryption import secret_name
from disque_operator.spec import Spec
from disqued.client import Backoff

BACKOFF: Final = Backoff(first_s=1.0, longest_s=60.0)

_LOG: Final = logging.getLogger(__name__)

_Secret: TypeAlias = tuple[str, str]
"""Namespace and name."""


def referenced_secrets(spec: Spec) -> frozenset[str]:
    """Return the names of all Secrets that a cluster refers to, and that may not have its label."""
    tls = secret_name(spec) if spec.tls.secret_name or spec.tls.issuer_ref else None  # cert-manager adds no label
    return frozenset(name for name in (spec.auth.secret_name, tls) if name)


class Watching(Protocol):
    """The part of `kube.Kube` that reports changes."""

    def watch(self, kind: str, namespace: str, name: str, since: str) -> AsyncGenerator[Json, None]:
        """Report the changes of an object."""


class References:
    """Watches the Secrets that clusters refer to. `changed` is called with each cluster whose Secret may have changed.

    A watch that fails is repeated with exponential backoff. Since it may have missed something, and would never work
    without the right to watch, the clusters are read again each time.
    """

    def __init__(self, kube: Watching, changed: Callable[[Key], None], rng: random.Random) -> None:
        self._kube = kube
        self._changed = changed
        self._rng = rng
        self._names: dict[Key, frozenset[str]] = {}
        self._watches: dict[_Secret, asyncio.Task[None]] = {}

    def refer(self, key: Key, names: frozenset[str]) -> None:
        """Note which Secrets a cluster refers to; none if it was deleted."""
        if self._names.get(key, frozenset()) == names:
            return
        self._names[key] = names
        if not names:
            del self._names[key]
        wanted = {(namespace, name) for (namespace, _), known in self._names.items() for name in known}
        for secret in wanted - self._watches.keys():
            self._watches[secret] = asyncio.create_task(self._watch(*secret), name=f"watch of Secret {secret[1]}")
        for secret in self._watches.keys() - wanted:
            self._watches.pop(secret).cancel()

    async def stop(self) -> None:
        """End all watches."""
        watches = list(self._watches.values())
        self._watches, self._names = {}, {}
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)

    async def _watch(self, namespace: str, name: str) -> None:
        version, failures = "", 0
        while True:
            try:
                async with contextlib.aclosing(self._kube.watch("Secret", namespace, name, version)) as events:
                    async for event in events:
                        version, failures = event["object"]["metadata"]["resourceVersion"], 0
                        if event["type"] != "BOOKMARK":
                            self._wake(namespace, name)
                await asyncio.sleep(BACKOFF.first_s)
            except KubeError as error:
                _LOG.warning("watch of Secret %s/%s ended: %s", namespace, name, error)
                version = "" if error.status == EXPIRED else version
                await asyncio.sleep(BACKOFF.wait_s(failures, self._rng))
                failures += 1
                self._wake(namespace, name)

    def _wake(self, namespace: str, name: str) -> None:
        for key, names in self._names.items():
            if key[0] == namespace and name in names:
                self._changed(key)
