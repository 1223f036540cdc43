"""`kubectl disque users NAME`: the users of a cluster that DisqueUsers declare."""

from __future__ import annotations

import argparse
from typing import Final

from disque_operator import names
from disque_operator.apivalues import Json, condition_of
from disque_operator.kubectl.api import Kubectl
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.output import form, output_option
from disqued.cli.views.columns import Column
from disqued.cli.views.table import print_rows

RESOURCE: Final = f"{names.USER_PLURAL}.{names.GROUP}"


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("name", help="name of the cluster")
    output_option(parser)


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Print one row for each user."""
    found = [item for item in kubectl.items("get", RESOURCE) if names.cluster_of(item) == chosen.name]
    print_rows(COLUMNS, found, form(chosen), f"No DisqueUsers of {chosen.name} found.")
    return Exit.OK


def _status(user: Json, field: str) -> str:
    return str((user.get("status") or {}).get(field) or "")


def _ready(user: Json, field: str) -> str:
    return str(condition_of(user.get("status") or {}, "Ready").get(field) or "")


COLUMNS: Final[list[Column[Json]]] = [
    Column("user", lambda user: _status(user, "userName") or user["metadata"]["name"], "USER"),
    Column("ready", lambda user: _ready(user, "status"), "READY"),
    Column("queues", lambda user: " ".join(user["spec"].get("queues") or ()), "QUEUES", folds=True),
    Column("allow", lambda user: " ".join(user["spec"].get("allow") or ()), "ALLOW", folds=True),
    Column("secret", lambda user: _status(user, "secretName"), "SECRET"),
    Column("reason", lambda user: _ready(user, "reason")),
    Column("message", lambda user: _ready(user, "message"), "MESSAGE", folds=True),
]
