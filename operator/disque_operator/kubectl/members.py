"""The nodes of a cluster, all asked at once, each through a port forward to its pod."""

from __future__ import annotations

import base64
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from disque_operator import names
from disque_operator.kubectl.api import Kubectl, MissingError, RefusedError, UnreachableError
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.forward import LOOPBACK, forwarded
from disque_operator.spec import Json
from disqued.client import Backoff, Client, DisqueError, ResponseError

T = TypeVar("T")

AT_ONCE = 16
"""So many nodes are connected to at a time."""
TIMEOUT_S = 15.0
"""The longest silence of a node: its answers come through the API server."""
PASSWORD_VARIABLE = "DISQUE_PASSWORD"  # noqa: S105  the name of a variable


@dataclass
class Members:
    """The nodes that can be asked, by pod, and why the others can not."""

    reached: dict[str, Client] = field(default_factory=dict)
    missed: dict[str, str] = field(default_factory=dict)
    machines: dict[str, str] = field(default_factory=dict)
    """All pods of the cluster, by ordinal, and where they run."""

    def ask(self, question: Callable[[Client], T]) -> dict[str, T]:
        """Each node's answer, by pod; a node that fails is among the missed from then on."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = pool.map(lambda item: (item[0], _answer(item[1], question)), list(self.reached.items()))
        found: dict[str, T] = {}
        for pod, (answer, trouble) in answers:
            if answer is None:
                self.missed[pod] = trouble
                del self.reached[pod]
            else:
                found[pod] = answer
        return found

    def complain(self) -> Exit:
        """Say on standard error whose figures are missing, and what that means for the exit status."""
        for pod, trouble in sorted(self.missed.items()):
            sys.stderr.write(f"{pod} is not in this: {trouble}\n")
        return Exit.CONNECTION if self.missed else Exit.OK


@contextlib.contextmanager
def connected(kubectl: Kubectl, cluster: Json) -> Iterator[Members]:
    """Connections to all nodes of a cluster that can be reached."""
    name = cluster["metadata"]["name"]
    secrets = passwords(kubectl, cluster)
    pods = kubectl.pods(name)
    members = Members(machines={pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods})
    with contextlib.ExitStack() as stack:

        def connect(pod: Json) -> None:
            client, trouble = _connect(kubectl, pod, secrets, stack)
            if client is None:
                members.missed[pod["metadata"]["name"]] = trouble
            else:
                members.reached[pod["metadata"]["name"]] = client

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(connect, pods))
        members.reached = {pod: members.reached[pod] for pod in sorted(members.reached, key=names.ordinal)}
        yield members


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
    return tuple(
        base64.b64decode(data[key]).decode().rstrip("\n") for key in ("password", "former-password") if data.get(key)
    )


def _connect(
    kubectl: Kubectl, pod: Json, secrets: Sequence[str], stack: contextlib.ExitStack
) -> tuple[Client | None, str]:
    """A client of the node in that pod, to be closed by the stack, or why there is none."""
    phase = pod.get("status", {}).get("phase", "Pending")
    if phase != "Running":
        return None, f"its pod is {phase}"
    try:
        port = stack.enter_context(forwarded(kubectl, pod["metadata"]["name"], names.CLIENT_PORT))
    except (RefusedError, UnreachableError) as error:
        return None, str(error)
    trouble = "it does not take the password"
    for password in (*secrets, None):
        client = client_at(port, password)
        answer, trouble = _answer(client, lambda asked: asked.info())  # which a node that loads answers too
        if answer is not None:
            stack.callback(client.close)
            return client, ""
        client.close()
    return None, trouble


def client_at(port: int, password: str | None) -> Client:
    """A client of the one node behind a local port."""
    once = Backoff(attempts=1)
    return Client([f"{LOOPBACK}:{port}"], password=password, discover=False, timeout_s=TIMEOUT_S, backoff=once)


def _answer(client: Client, question: Callable[[Client], T]) -> tuple[T | None, str]:
    """The answer, or why there is none."""
    try:
        return question(client), ""
    except ResponseError as error:
        return None, f"it answered {error}"
    except DisqueError as error:
        return None, f"no answer ({error})"
