"""Executes planned actions in order, up to the first that fails. Each is bound to the object that was observed.

An object is deleted only with the observed UID and applied only over the observed version, and a command reaches a
broker only if it has the observed node ID. Each action needs the Lease, and gets no more time than the Lease has left.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from disque_operator import brokers
from disque_operator.actions import Action, Apply, Command, Create, DeleteChild, DeletePod, Issue, WriteStatus
from disque_operator.brokers import CommandFailedError, Connection
from disque_operator.kube import CONFLICT, FORBIDDEN, NAMESPACE_TERMINATING, TOO_MANY_REQUESTS, Kube, KubeError
from disque_operator.logs import ClusterLogger


class Permit(Protocol):
    """The part of `lease.Lease` that the executor needs."""

    @property
    def remaining_s(self) -> float:
        """Return for how many seconds this process may act."""


EXPIRED: Final = "the lease has expired"


class LostError(Exception):
    """The Lease has expired: another operator may act, so this one must not."""


class StaleError(Exception):
    """An object has changed since it was observed, its namespace is being deleted, or it cannot be evicted now.

    The next round observes it again.
    """


class FailedError(Exception):
    """An action failed. `reason` is the reason for the condition; the text says what failed and why."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


_REASONS: Mapping[int, str] = {0: "ApiServerUnreachable", 403: "Forbidden", 422: "Invalid"}
"""Reasons by HTTP status of the API server; 0 means no response."""
_NAME_TAKEN: Final = (
    "there is one of this name that does not belong to this resource: delete it, or wait if it belongs to a deleted "
    "resource, because Kubernetes deletes it soon"
)


@dataclass(frozen=True)
class ExecutorContext:
    """What the executor needs beside the actions."""

    kube: Kube
    permit: Permit
    namespace: str
    connections: Mapping[str, Connection]
    log: ClusterLogger
    counted: Callable[[tuple[str, ...]], None]
    """Called with each command to a broker, for the metrics."""
    applied: Callable[[Apply], None] = lambda _action: None
    """Called with each manifest that was applied."""


@asynccontextmanager
async def permitted(permit: Permit) -> AsyncIterator[None]:
    """Limit what happens inside to the time that the Lease has left.

    Raises:
        LostError: The Lease has expired, before or meanwhile.
    """
    left_s = permit.remaining_s
    if left_s <= 0:
        raise LostError(EXPIRED)
    try:
        async with asyncio.timeout(left_s):
            yield
    except TimeoutError:
        raise LostError(EXPIRED) from None


async def execute(actions: Sequence[Action], context: ExecutorContext) -> None:
    """Execute actions in order.

    Raises:
        LostError: The Lease has expired.
        StaleError: An object is not the one, or not the version, that was observed.
        FailedError: Anything else.
    """
    for action in actions:
        try:
            async with permitted(context.permit):
                await _execute(action, context)
        except KubeError as error:
            if isinstance(action, Create) and error.status == CONFLICT:
                raise FailedError("NameTaken", f"{_what(action)}: {_NAME_TAKEN}") from error
            if error.status in {CONFLICT, TOO_MANY_REQUESTS} or NAMESPACE_TERMINATING in error.causes:
                raise StaleError(f"{_what(action)}: {error}") from error
            raise FailedError(_reason(action, error), f"{_what(action)}: {error}") from error
        except CommandFailedError as error:
            raise FailedError("CommandFailed", f"{_what(action)}: {error}") from error
        context.log.info("%s: %s", _what(action), action.why)


def _reason(action: Action, error: KubeError) -> str:
    """Return the reason for the condition. A refused expansion looks like a missing permission otherwise."""
    is_claim = isinstance(action, Apply) and action.manifest["kind"] == "PersistentVolumeClaim"
    if is_claim and error.status == FORBIDDEN and "storageclass" in str(error).lower():
        return "VolumeNotExpandable"
    return _REASONS.get(error.status, "ApiServerError")


async def _execute(action: Action, context: ExecutorContext) -> None:
    match action:
        case Apply(manifest):
            await context.kube.apply(manifest)
            context.applied(action)
        case Create(manifest):
            await context.kube.create(manifest["kind"], context.namespace, manifest)
        case Issue():
            await context.kube.apply(action.filled())
        case DeleteChild(kind, name, uid):
            await context.kube.delete(kind, context.namespace, name, uid)
        case DeletePod(name, uid, evict=True):
            await context.kube.evict(context.namespace, name, uid)
        case DeletePod(name, uid):
            await context.kube.delete("Pod", context.namespace, name, uid)
        case WriteStatus(resource, status):
            await context.kube.write_status(resource, status)
        case Command(pod, node_id, words):
            connection = _connection(context, pod)
            if action.met is not None:
                other, other_id = action.met
                await brokers.confirm_identity(_connection(context, other), other_id)
            context.counted(("(secret)",) if action.secret else words)
            await brokers.send_command(connection, node_id, words)


def _connection(context: ExecutorContext, pod: str) -> Connection:
    connection = context.connections.get(pod)
    if connection is None:
        raise StaleError(f"no broker answered in {pod}")
    return connection


def _what(action: Action) -> str:
    match action:
        case Apply(manifest):
            return f"apply {manifest['kind']} {manifest['metadata']['name']}"
        case Create(manifest):
            return f"create {manifest['kind']} {manifest['metadata']['name']}"
        case Issue(manifest):
            return f"make a key for Secret {manifest['metadata']['name']}"
        case DeleteChild(kind, name):
            return f"delete {kind} {name}"
        case DeletePod(name, evict=evict):
            return f"{'evict' if evict else 'delete'} Pod {name}"
        case WriteStatus(resource):
            return f"status of {resource['kind']} {resource['metadata']['name']}"
        case Command(pod, _, words, _, secret, _):
            return f"command {pod}: {' '.join(words[:3]) + ' …' if secret else ' '.join(words)}"
