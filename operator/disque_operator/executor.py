"""Does what was planned, in order, up to the first thing that fails. Every one is aimed at exactly what was looked at.

Objects are deleted only with the UID that was seen, applied only over the version that was seen, and a broker is told
something only if it is the node that was seen. Before each, the Lease has to be ours, and for as long as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from disque_operator import brokers
from disque_operator.actions import Action, Apply, Command, DeleteChild, DeletePod
from disque_operator.brokers import Connection, RefusedError
from disque_operator.kube import CONFLICT, NAMESPACE_ENDS, Kube, KubeError
from disque_operator.logs import ClusterLogger


class Permit(Protocol):
    """The part of `lease.Lease` that is needed here."""

    @property
    def remaining_s(self) -> float:
        """For so long this process may act."""


class LostError(Exception):
    """Another operator may act by now: nothing more is done."""


class StaleError(Exception):
    """What was looked at has changed since, or is about to go with its namespace: look again."""


class FailedError(Exception):
    """Something was not done. `reason` is a word for the condition, the text says what and why."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


_REASONS: Mapping[int, str] = {0: "ApiServerUnreachable", 403: "Forbidden", 422: "Invalid"}
"""By the HTTP status of the API server's answer."""


@dataclass(frozen=True)
class ExecutorContext:
    """What acting needs."""

    kube: Kube
    permit: Permit
    namespace: str
    connections: Mapping[str, Connection]
    log: ClusterLogger
    counted: Callable[[tuple[str, ...]], None]
    """Told of each command to a broker."""


async def execute(actions: Sequence[Action], context: ExecutorContext) -> None:
    """Do them.

    Raises:
        LostError: the Lease is not ours any more.
        StaleError: an object is another one, or another version, than the one looked at.
        FailedError: anything else.
    """
    for action in actions:
        left_s = context.permit.remaining_s
        if left_s <= 0:
            raise LostError
        try:
            async with asyncio.timeout(left_s):
                await _execute(action, context)
        except TimeoutError:
            raise LostError from None
        except KubeError as error:
            if error.status == CONFLICT or NAMESPACE_ENDS in error.causes:
                raise StaleError(f"{_what(action)}: {error}") from error
            raise FailedError(_REASONS.get(error.status, "ApiServerError"), f"{_what(action)}: {error}") from error
        except RefusedError as error:
            raise FailedError("CommandFailed", f"{_what(action)}: {error}") from error
        context.log.info("%s: %s", _what(action), action.why)


async def _execute(action: Action, context: ExecutorContext) -> None:
    match action:
        case Apply(manifest):
            await context.kube.apply(manifest)
        case DeleteChild(kind, name, uid):
            await context.kube.delete(kind, context.namespace, name, uid)
        case DeletePod(name, uid):
            await context.kube.delete("Pod", context.namespace, name, uid)
        case Command(pod, node_id, words):
            connection = context.connections.get(pod)
            if connection is None:
                raise StaleError(f"the broker in {pod} did not answer")
            context.counted(("(secret)",) if action.secret else words)
            await brokers.send_command(connection, node_id, words)


def _what(action: Action) -> str:
    match action:
        case Apply(manifest):
            return f"apply {manifest['kind']} {manifest['metadata']['name']}"
        case DeleteChild(kind, name):
            return f"delete {kind} {name}"
        case DeletePod(name):
            return f"replace Pod {name}"
        case Command(pod, _, words, _, secret):
            return f"tell {pod}: {' '.join(words[:3]) + ' …' if secret else ' '.join(words)}"
