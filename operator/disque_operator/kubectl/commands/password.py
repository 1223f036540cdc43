"""`kubectl disque password NAME`: print the password on standard output, and how to connect on standard error.

Only the password is captured by `DISQUE_PASSWORD=$(kubectl disque password orders)`; a user at a terminal sees both.
"""

from __future__ import annotations

import argparse
import sys

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.kubectl.api import Kubectl
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.members import PASSWORD_VARIABLE, passwords, serves_tls
from disque_operator.kubectl.output import output_option, print_json
from disque_operator.kubectl.resource import status


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("name", help="name of the cluster")
    output_option(parser)


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Print the password and, on a terminal, how to connect."""
    cluster = kubectl.cluster(chosen.name)
    password = next(iter(passwords(kubectl, cluster)), None)
    endpoint = _endpoint(cluster)
    secret = None if password is None else status(cluster).get("secretName") or names.client_secret(chosen.name)
    if chosen.output:
        print_json({"endpoint": endpoint, "secret": secret, "key": "password", "password": password})
        return Exit.OK
    if sys.stderr.isatty():
        sys.stderr.write(_advice(cluster, endpoint, secret))
    if password is not None:
        sys.stdout.write(password + "\n")
    return Exit.OK


def _endpoint(cluster: Json) -> str:
    """Return the address for clients inside Kubernetes."""
    metadata = cluster["metadata"]
    service = cluster["spec"].get("service") or {}
    port = service.get("tlsPort", names.TLS_PORT) if serves_tls(cluster) else service.get("port", names.CLIENT_PORT)
    default = f"{names.client_host(metadata['name'], metadata['namespace'])}:{port}"
    return str(status(cluster).get("endpoint") or default)


def _advice(cluster: Json, endpoint: str, secret: str | None) -> str:
    name, namespace = cluster["metadata"]["name"], cluster["metadata"]["namespace"]
    lines = [f"Inside Kubernetes, connect to {endpoint}"]
    if secret is not None:
        lines.append(f"In pods, set {PASSWORD_VARIABLE} from the key `password` of the Secret {secret}")
    lines.append(f"From this machine, run: kubectl disque cli --namespace {namespace} {name}")
    return "\n".join(lines) + "\n"
