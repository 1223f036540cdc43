"""The nodes of a cluster, all asked at once, each through a port forward to its pod."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.kubectl.api import Kubectl, MissingError, RefusedError, UnreachableError
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.forward import LOOPBACK, forwarded
from disqued.client import Backoff, Client, DisqueError, ResponseError

T = TypeVar("T")

AT_ONCE = 16
"""So many nodes are asked at a time: each forward is a process."""
TIMEOUT_S = 15.0
"""The longest silence of a node: its answers come through the API server."""
PASSWORD_VARIABLE = "DISQUE_PASSWORD"  # noqa: S105  the name of a variable


class SilentError(Exception):
    """A node did not answer; the text says why."""


class Members:
    """The nodes of a cluster."""

    def __init__(self, kubectl: Kubectl, cluster: Json) -> None:
        self._kubectl = kubectl
        self._secrets = passwords(kubectl, cluster)
        self._pods = {pod["metadata"]["name"]: pod for pod in kubectl.pods(cluster["metadata"]["name"])}
        self.missed: dict[str, str] = {}
        """Those that did not answer, by pod, and why."""

    @property
    def machines(self) -> dict[str, str]:
        """All pods, by ordinal, and where they run."""
        return {name: pod["spec"].get("nodeName", "") for name, pod in self._pods.items()}

    def ask(self, question: Callable[[Client], T]) -> dict[str, T]:
        """The answers by pod. Who does not answer is among the missed, and is not asked again."""
        asked = [pod for pod in self._pods if pod not in self.missed]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = [pool.submit(self._ask, pod, question) for pod in asked]
        found: dict[str, T] = {}
        for pod, answer in zip(asked, answers, strict=True):
            try:
                found[pod] = answer.result()
            except (SilentError, RefusedError, UnreachableError) as error:
                self.missed[pod] = str(error)
        return found

    def complain(self) -> Exit:
        """Say on standard error whose figures are missing, and what that means for the exit status."""
        for pod, trouble in sorted(self.missed.items()):
            sys.stderr.write(f"{pod} is not in this: {trouble}\n")
        return Exit.CONNECTION if self.missed else Exit.OK

    def _ask(self, pod: str, question: Callable[[Client], T]) -> T:
        phase = self._pods[pod].get("status", {}).get("phase", "Pending")
        if phase != "Running":
            raise SilentError(f"its pod is {phase}")
        with forwarded(self._kubectl, pod, names.CLIENT_PORT) as port, client_at(port, self._secrets) as client:
            try:
                return question(client)
            except ResponseError as error:
                raise SilentError(f"it answered {error}") from error
            except DisqueError as error:
                raise SilentError(f"no answer ({error})") from error


def passwords(kubectl: Kubectl, cluster: Json) -> tuple[str, ...]:
    """The passwords that nodes may take, the current one first; none where no node asks for one.

    Whatever the spec says: while passwords are switched off some nodes still ask for one.

    Raises:
        RefusedError: the Secret can not be read.
    """
    if given := os.environ.get(PASSWORD_VARIABLE):
        return (given,)
    try:
        secret = kubectl.json("get", "secret", names.auth_secret(cluster["metadata"]["name"]))
    except MissingError:
        return ()
    except RefusedError as error:
        hint = f"Who may not read the Secret can say the password in {PASSWORD_VARIABLE}"
        raise RefusedError(f"{error}\n{hint}") from error
    data: Mapping[str, str] = secret.get("data") or {}
    there = [data[key] for key in ("password", "former-password") if data.get(key)]
    return tuple(base64.b64decode(value).decode().rstrip("\n") for value in there)


def client_at(port: int, secrets: Sequence[str]) -> Client:
    """A client of the one node behind a local port, with the first password that it takes."""
    return _client(port, accepted(port, secrets))


def accepted(port: int, secrets: Sequence[str]) -> str | None:
    """The first of these passwords that the node takes; None when it takes none of them."""
    return next((secret for secret in secrets if _takes(port, secret)), None)


def _client(port: int, password: str | None) -> Client:
    once = Backoff(attempts=1)
    return Client([f"{LOOPBACK}:{port}"], password=password, discover=False, timeout_s=TIMEOUT_S, backoff=once)


def _takes(port: int, password: str) -> bool:
    """Whether the node lets us in; one that does not answer at all tells the question so."""
    with _client(port, password) as client:
        try:
            client.info()  # which a node that loads answers too
        except ResponseError:
            return False
        except DisqueError:
            return True
        return True
