"""`kubectl disque password NAME`: the password alone on standard output, how to connect on standard error.

So `DISQUE_PASSWORD=$(kubectl disque password orders)` works, and a person reads both.
"""

from __future__ import annotations

import argparse
import sys

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.kubectl.api import Kubectl
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.members import PASSWORD_VARIABLE, passwords
from disque_operator.kubectl.output import output_option, print_json
from disque_operator.kubectl.resource import status


def options(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("name", help="the cluster")
    output_option(parser)


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Print it."""
    cluster = kubectl.cluster(chosen.name)
    password = next(iter(passwords(kubectl, cluster)), None)
    endpoint = _endpoint(cluster)
    secret = None if password is None else names.auth_secret(chosen.name)
    if chosen.output:
        print_json({"endpoint": endpoint, "secret": secret, "key": "password", "password": password})
        return Exit.OK
    if sys.stderr.isatty():
        sys.stderr.write(_advice(cluster, endpoint, secret))
    if password is not None:
        sys.stdout.write(password + "\n")
    return Exit.OK


def _endpoint(cluster: Json) -> str:
    """Where clients within Kubernetes connect."""
    metadata = cluster["metadata"]
    port = (cluster["spec"].get("service") or {}).get("port", names.CLIENT_PORT)
    usual = f"{names.client_service(metadata['name'])}.{metadata['namespace']}.svc:{port}"
    return str(status(cluster).get("endpoint") or usual)


def _advice(cluster: Json, endpoint: str, secret: str | None) -> str:
    name, namespace = cluster["metadata"]["name"], cluster["metadata"]["namespace"]
    lines = [f"Within Kubernetes: {endpoint}"]
    if secret is not None:
        lines.append(f"Pods get the password ({PASSWORD_VARIABLE}) from the key `password` of the Secret {secret}")
    lines.append(f"From here: kubectl disque cli --namespace {namespace} {name}")
    return "\n".join(lines) + "\n"
