"""`kubectl disque cli NAME [ARG ...]`: the `disque` command line, connected to a node through the API server."""

from __future__ import annotations

import argparse
import os
from importlib import import_module

from disque_operator.apivalues import Json
from disque_operator.kubectl.api import Kubectl, RequestRefusedError
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.forward import LOOPBACK, forwarded
from disque_operator.kubectl.members import (
    PASSWORD_VARIABLE,
    Forward,
    Login,
    choose_login,
    client_port,
    passwords,
    pod_host,
)
from disqued.cli.endpoint import add_login_options


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--pod", help="pod to connect to (default: the first ready pod)")
    add_login_options(parser)
    parser.add_argument("name", help="name of the cluster")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="...", help="arguments of `disque`")


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Run `disque` through a port forward to the node, and return the exit status of `disque`."""
    cluster = kubectl.cluster(chosen.name)
    login = choose_login(chosen, kubectl, cluster)
    secrets = passwords(kubectl, cluster, login.user)
    pods = kubectl.pods(chosen.name)
    pod = choose_pod(pods, chosen.pod)
    host = pod_host(cluster, pod)
    found = next(each for each in pods if each["metadata"]["name"] == pod)
    login = login.at(found)
    with forwarded(kubectl, pod, client_port(found)) as port:
        os.environ |= {"DISQUE_HOST": LOOPBACK, "DISQUE_PORT": str(port), **_variables(login, host)}
        if password := Forward(port, host, login).accepted(secrets):
            os.environ[PASSWORD_VARIABLE] = password
        words = chosen.words[1:] if chosen.words[:1] == ["--"] else chosen.words
        if login.tls is not None and login.tls.insecure:
            words = ["--insecure", *words]
        status: int = import_module("disqued.cli.main").main(words)
        return next(each for each in Exit if each.value == status)


def _variables(login: Login, host: str) -> dict[str, str]:
    """Return the variables that tell `disque` how to log in."""
    tls = login.tls
    given = {"DISQUE_USER": login.user, "DISQUE_SNI": host}
    if tls is not None:
        given |= {"DISQUE_TLS": "yes", "DISQUE_CACERT": tls.cacert, "DISQUE_CERT": tls.cert, "DISQUE_KEY": tls.key}
    return {name: value for name, value in given.items() if value is not None}


def choose_pod(pods: list[Json], wanted: str | None) -> str:
    """Return the name of the wanted pod, or of the first ready pod if `wanted` is None.

    Raises:
        RequestRefusedError: no such pod exists, or no pod is ready.
    """
    found = [pod["metadata"]["name"] for pod in pods if _matches(pod, wanted)]
    if not found:
        existing = ", ".join(pod["metadata"]["name"] for pod in pods) or "none"
        raise RequestRefusedError(
            f'pod "{wanted}" not found; pods of the cluster: {existing}'
            if wanted
            else f"no pod is ready; pods of the cluster: {existing}"
        )
    return str(found[0])


def _matches(pod: Json, wanted: str | None) -> bool:
    if wanted is not None:
        return bool(pod["metadata"]["name"] == wanted)
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
