"""Queries to all nodes of a cluster in parallel, each through a port forward to its pod."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.kubectl.api import Kubectl, MissingError, RequestRefusedError, UnreachableError
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.forward import LOOPBACK, forwarded
from disqued.client import Backoff, Client, DisqueError, ResponseError

T = TypeVar("T")

PARALLEL_QUERIES = 16
"""The number of nodes queried in parallel; each port forward is a process."""
TIMEOUT_S = 15.0
"""How long to wait for a reply of a node; replies come through the API server."""
PASSWORD_VARIABLE = "DISQUE_PASSWORD"  # noqa: S105  the name of a variable


class NoReplyError(Exception):
    """A node did not reply; the text says why."""


class Members:
    """The nodes of a cluster."""

    def __init__(self, kubectl: Kubectl, cluster: Json) -> None:
        self._kubectl = kubectl
        self._secrets = passwords(kubectl, cluster)
        self._pods = {pod["metadata"]["name"]: pod for pod in kubectl.pods(cluster["metadata"]["name"])}
        self.unreachable: dict[str, str] = {}
        """Why each node that did not reply failed, by pod."""

    @property
    def kubernetes_nodes(self) -> dict[str, str]:
        """The Kubernetes node that each pod runs on, sorted by the pods' ordinals; empty if not scheduled yet."""
        return {name: pod["spec"].get("nodeName", "") for name, pod in self._pods.items()}

    def query(self, question: Callable[[Client], T]) -> dict[str, T]:
        """Run the function against each node and return the results by pod.

        A node that does not reply is added to `unreachable`, and later queries skip it.
        """
        queried = [pod for pod in self._pods if pod not in self.unreachable]
        with ThreadPoolExecutor(PARALLEL_QUERIES) as pool:
            answers = [pool.submit(self._query, pod, question) for pod in queried]
        found: dict[str, T] = {}
        for pod, answer in zip(queried, answers, strict=True):
            try:
                found[pod] = answer.result()
            except (NoReplyError, RequestRefusedError, UnreachableError) as error:
                self.unreachable[pod] = str(error)
        return found

    def warn_unreachable(self) -> Exit:
        """Print a warning for each node that is missing from the output, and return the exit status."""
        for pod, reason in sorted(self.unreachable.items()):
            sys.stderr.write(f"warning: {pod} is not included: {reason}\n")
        return Exit.CONNECTION if self.unreachable else Exit.OK

    def _query(self, pod: str, question: Callable[[Client], T]) -> T:
        phase = self._pods[pod].get("status", {}).get("phase", "Pending")
        if phase != "Running":
            raise NoReplyError(f"pod is {phase}")
        with forwarded(self._kubectl, pod, names.CLIENT_PORT) as port, client_at(port, self._secrets) as client:
            try:
                return question(client)
            except ResponseError as error:
                raise NoReplyError(f"node replied {error}") from error
            except DisqueError as error:
                raise NoReplyError(f"no reply ({error})") from error


def passwords(kubectl: Kubectl, cluster: Json) -> tuple[str, ...]:
    """Return the passwords that nodes may accept, the current one first; empty if there is no Secret.

    The spec is ignored: while authentication is being disabled, some nodes still require a password.

    Raises:
        RequestRefusedError: the Secret cannot be read.
    """
    if given := os.environ.get(PASSWORD_VARIABLE):
        return (given,)
    try:
        secret = kubectl.json("get", "secret", names.auth_secret(cluster["metadata"]["name"]))
    except MissingError:
        return ()
    except RequestRefusedError as error:
        hint = f"if you cannot read the Secret, set the password in {PASSWORD_VARIABLE}"
        raise RequestRefusedError(f"{error}\n{hint}") from error
    data: Mapping[str, str] = secret.get("data") or {}
    there = [data[key] for key in ("password", "former-password") if data.get(key)]
    return tuple(base64.b64decode(value).decode().rstrip("\n") for value in there)


def client_at(port: int, secrets: Sequence[str]) -> Client:
    """Return a client of the node behind a local port, with the first password that the node accepts."""
    return _client(port, accepted(port, secrets))


def accepted(port: int, secrets: Sequence[str]) -> str | None:
    """Return the first of these passwords that the node accepts, or None."""
    return next((secret for secret in secrets if _accepts(port, secret)), None)


def _client(port: int, password: str | None) -> Client:
    once = Backoff(attempts=1)
    return Client([f"{LOOPBACK}:{port}"], password=password, discover=False, timeout_s=TIMEOUT_S, backoff=once)


def _accepts(port: int, password: str) -> bool:
    """Whether the node accepts the password. True if it does not reply, so that the query itself reports the error."""
    with _client(port, password) as client:
        try:
            client.info()  # INFO works while the node loads its AOF, too
        except ResponseError:
            return False
        except DisqueError:
            return True
        return True
