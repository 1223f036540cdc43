"""What all nodes know about a job."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from disqued.cli.connection import CommandRefusedError, ConnectionFailedError, ConnectionLostError
from disqued.cli.endpoint import choose_endpoint
from disqued.cli.views.client import connected_client
from disqued.client import Client, DisqueError, JobDetails, JobFate, JobId, ResponseError

UNKNOWN = "unknown"
STATES = ("queued", "active", "delayed", "moving", "wait-repl")
"""States of a job at a node, the nearest to a delivery first."""
STYLES = {"done": "green", "held": "yellow", "dead": "red", "expired": "red", "deleted": "red", UNKNOWN: "red"}


@dataclass(frozen=True, slots=True)
class Known:
    """What the nodes that answered know about a job together."""

    shown: Sequence[JobDetails] = ()
    """What SHOW replies at the nodes that have it."""
    fate: JobFate | None = None
    """What RESULT replies; None if no node knows the job, or none can tell."""

    @property
    def queue(self) -> str:
        """The queue of the job; empty if only its record is left."""
        return next((job.queue for job in self.shown if job.queue), "")

    @property
    def after(self) -> tuple[JobId, ...]:
        """Its parents."""
        return next((job.after for job in self.shown if job.after), ())

    @property
    def waits_for(self) -> tuple[JobId, ...]:
        """Its parents that are not met. One that is met for one node is met."""
        met = {parent for job in self.shown for parent in job.after if parent not in job.waits_for}
        return tuple(parent for parent in self.after if parent not in met)

    @property
    def state(self) -> str:
        """The outcome of a job that has ended; otherwise the state at the node that is nearest to a delivery."""
        if self.fate is not None and (self.fate.outcome != "waiting" or not self.shown):
            return self.fate.outcome
        if not self.shown:
            return UNKNOWN
        if any(job.dead_since_ms is not None for job in self.shown):
            return "dead"
        states = {job.state for job in self.shown}
        if "acked" in states:
            return "done"
        if self.waits_for:
            return "held"
        return next(state for state in STATES if state in states)


class EveryNode:
    """Clients of all nodes that can be reached; `missing` are the addresses of the others."""

    def __init__(self, options: argparse.Namespace, stack: ExitStack) -> None:
        endpoint = choose_endpoint(options)
        self.first = stack.enter_context(connected_client(endpoint))
        hello = self.first.hello()
        self._clients: dict[str, Client] = {str(endpoint): self.first}
        self.missing: list[str] = []
        for node in hello.nodes:
            at = endpoint.at(node.host, node.port)
            if node.id == hello.node_id:
                continue
            try:
                self._clients[str(at)] = stack.enter_context(connected_client(at))
            except (ConnectionFailedError, ConnectionLostError, CommandRefusedError):
                self.missing.append(str(at))

    def ask(self, job_id: str) -> Known:
        """Ask all nodes about a job."""
        shown: list[JobDetails] = []
        fate: JobFate | None = None
        is_told = False
        for address, client in list(self._clients.items()):
            try:
                job = client.show(job_id)
                if job is not None:
                    shown.append(job)
                if not is_told:
                    is_told, fate = _fate(client, job_id)
            except ResponseError:
                raise
            except DisqueError:
                del self._clients[address]
                self.missing.append(address)
        return Known(shown, fate)

    def warn_of_missing(self) -> None:
        """Name the nodes that do not answer on standard error."""
        for address in self.missing:
            sys.stderr.write(f"{address} does not answer; what only that node knows is missing.\n")


def _fate(client: Client, job_id: str) -> tuple[bool, JobFate | None]:
    """Whether the node could ask the cluster about the end of a job, and what it was told.

    A node of the original cannot, and a user may lack the permission.
    """
    try:
        return True, client.result(job_id)
    except ResponseError:
        return False, None
