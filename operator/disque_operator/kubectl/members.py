"""Queries to all nodes of a cluster in parallel, each through a port forward to its pod.

A port forward connects to the loopback address, so with TLS the certificate of a node is verified against the host name
that its pod announces. With `spec.tls`, the plugin finds the port and the authorities itself.
"""

from __future__ import annotations

import argparse
import atexit
import base64
import os
import ssl
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.kubectl.api import Kubectl, MissingError, RequestRefusedError, UnreachableError
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.forward import LOOPBACK, forwarded
from disqued.cli.connection import tls_settings
from disqued.cli.endpoint import Tls, choose_tls
from disqued.client import Backoff, Client, DisqueError, ResponseError

T = TypeVar("T")

PARALLEL_QUERIES = 16
"""The number of nodes queried in parallel; each port forward is a process."""
TIMEOUT_S = 15.0
"""How long to wait for a reply of a node; replies come through the API server."""
PASSWORD_VARIABLE = "DISQUE_PASSWORD"  # noqa: S105  the name of a variable


DEFAULT_USER = "default"
"""The user whose password is in the Secret of the cluster."""


class NoReplyError(Exception):
    """A node did not reply; the text says why."""


@dataclass(frozen=True)
class Login:
    """As whom and how to connect to nodes."""

    user: str | None = None
    tls: Tls | None = None
    context: ssl.SSLContext | None = None
    """The settings that `tls` stands for."""
    is_given: bool = True
    """Whether TLS, or no TLS, was asked for. Otherwise it is used for pods that have a port for it."""

    def at(self, pod: Json) -> Login:
        """Return the login for a pod: one that is not replaced since TLS was switched on serves only without it."""
        return self if self.is_given or client_port(pod) == names.TLS_PORT else Login(self.user)


def client_port(pod: Json) -> int:
    """Return the port of a pod for clients: the one with TLS if it has one."""
    ports = [port.get("name") for each in pod["spec"].get("containers") or () for port in each.get("ports") or ()]
    return names.TLS_PORT if names.TLS_PORT_NAME in ports else names.CLIENT_PORT


def choose_login(chosen: argparse.Namespace, kubectl: Kubectl, cluster: Json) -> Login:
    """Return the login from the options that `add_login_options` adds, completed from the environment as by `disque`.

    If the cluster has TLS by its spec, it is used without options, and trusts the authorities that the operator
    publishes.

    Raises:
        RequestRefusedError: a file of TLS cannot be used, or an option has no effect without TLS.
    """
    user = getattr(chosen, "user", os.environ.get("DISQUE_USER"))
    try:
        given = choose_tls(chosen)
        tls = given
        if serves_tls(cluster) and (given is None or not (given.cacert or given.insecure)):
            tls = replace(given or Tls(), cacert=_published(kubectl, cluster))
        return Login(user, tls, None if tls is None else tls_settings(tls), is_given=given is not None)
    except ValueError as error:
        raise RequestRefusedError(str(error)) from error
    except OSError as error:
        raise RequestRefusedError(f"cannot use the files of --cacert, --cert and --key: {error}") from error


def serves_tls(cluster: Json) -> bool:
    """Whether clients can use TLS by the spec."""
    tls = cluster["spec"].get("tls") or {}
    return bool(tls.get("enabled")) and tls.get("clients") != "Disabled"


def _published(kubectl: Kubectl, cluster: Json) -> str | None:
    """Return the path of a file with the authorities that the operator publishes; it is deleted at the end."""
    try:
        found = kubectl.json("get", "configmap", names.ca_config_map(cluster["metadata"]["name"]))
    except MissingError:
        return None
    with tempfile.NamedTemporaryFile("w", prefix="disque-ca-", suffix=".crt", delete=False) as file:
        file.write(found["data"]["ca.crt"])
    atexit.register(Path(file.name).unlink, missing_ok=True)
    return file.name


class Members:
    """The nodes of a cluster."""

    def __init__(self, kubectl: Kubectl, cluster: Json, login: Login) -> None:
        self._kubectl = kubectl
        self._cluster = cluster
        self._login = login
        self._secrets = passwords(kubectl, cluster, login.user)
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
        host = pod_host(self._cluster, pod)
        found = self._pods[pod]
        with (
            forwarded(self._kubectl, pod, client_port(found)) as port,
            Forward(port, host, self._login.at(found)).client(self._secrets) as client,
        ):
            try:
                return question(client)
            except ResponseError as error:
                raise NoReplyError(f"node replied {error}") from error
            except DisqueError as error:
                raise NoReplyError(f"no reply ({error})") from error


def pod_host(cluster: Json, pod: str) -> str:
    """Return the host name that a pod announces."""
    metadata = cluster["metadata"]
    return names.pod_host(metadata["name"], metadata["namespace"], names.ordinal(pod))


def passwords(kubectl: Kubectl, cluster: Json, user: str | None = None) -> tuple[str, ...]:
    """Return the passwords that nodes may accept, the current one first; empty if there is no Secret.

    The spec is ignored: while authentication is being disabled, some nodes still require a password.

    Raises:
        RequestRefusedError: the Secret cannot be read, or has not the password of the user.
    """
    if given := os.environ.get(PASSWORD_VARIABLE):
        return (given,)
    if user not in {None, DEFAULT_USER}:
        raise RequestRefusedError(f"the password of user {user} is missing; set it in {PASSWORD_VARIABLE}")
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


@dataclass(frozen=True)
class Forward:
    """The local port that leads to a node, the host name of the node, and how to log in."""

    port: int
    host: str
    login: Login

    def client(self, secrets: Sequence[str]) -> Client:
        """Return a client of the node, with the first password that the node accepts."""
        return self._client(self.accepted(secrets))

    def accepted(self, secrets: Sequence[str]) -> str | None:
        """Return the first of these passwords that the node accepts, or None."""
        return next((secret for secret in secrets if self._accepts(secret)), None)

    def _client(self, password: str | None) -> Client:
        return Client(
            [f"{LOOPBACK}:{self.port}"],
            user=self.login.user,
            password=password,
            tls=self.login.context or False,
            tls_server_name=self.host,
            discover=False,
            timeout_s=TIMEOUT_S,
            backoff=Backoff(attempts=1),
        )

    def _accepts(self, password: str) -> bool:
        """Whether the node accepts the password. True without a reply, so that the query itself reports the error."""
        with self._client(password) as client:
            try:
                client.info()  # INFO works while the node loads its AOF, too
            except ResponseError:
                return False
            except DisqueError:
                return True
            return True
