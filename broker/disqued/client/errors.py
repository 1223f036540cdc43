"""The exceptions of the client.

There are two families. A `ResponseError` is a reply: the node refused the command. The first word of its text, the
prefix, selects the class from `BY_PREFIX`. The others mean that there was no reply:

- `ConnectionFailed`: the command was never sent, so it was not executed.
- `ConnectionLost`: the command was sent and no reply arrived, so it may or may not have been executed.

`NotReplicated` (`NOREPL`) is an error reply, but its outcome is unknown, as for `ConnectionLost`; see the class.
"""

from __future__ import annotations

from disqued.client.values import Outcome


class DisqueError(Exception):
    """The base class of all errors of this package."""


class ConnectionFailed(DisqueError, ConnectionError):
    """No node could be reached. The command was not sent, so it is always safe to try again later."""


class ConnectionLost(DisqueError, ConnectionError):
    """The connection broke, or timed out, after the command was sent; the node may have executed the command.

    The client repeats idempotent calls itself, so this error comes from other calls, or after all attempts. For `add`
    it means that the outcome is unknown, as for `NotReplicated`.
    """


class ClientClosed(DisqueError):
    """The client was used after `close()`."""


class UnexpectedReply(DisqueError):
    """The reply has an unknown format: the server is not a Disque node, or an incompatible version."""


class JobFailed(DisqueError):
    """A job ended without being done, so it has no result: it became a dead letter, expired, or was deleted."""

    def __init__(self, job_id: str, outcome: Outcome) -> None:
        super().__init__(job_id, outcome)
        self.job_id = job_id
        self.outcome = outcome
        """How it ended: `dead`, `expired` or `deleted`."""

    def __str__(self) -> str:
        return f"job {self.job_id} is not done: {self.outcome}"


class ResultTooLong(DisqueError, ValueError):
    """A result is longer than nodes keep. Store it elsewhere, and keep its address as the result."""

    def __init__(self, length: int, most: int) -> None:
        super().__init__(length, most)
        self.length = length
        """How many bytes it has."""
        self.most = most
        """How many it may have."""

    def __str__(self) -> str:
        return (
            f"the result has {self.length} bytes, and nodes keep {self.most}: store it elsewhere, and keep its address"
        )


class ResponseError(DisqueError):
    """The node refused the command. `prefix` is the first word of the text, for example `ERR`."""

    @property
    def prefix(self) -> str:
        """The first word of the text, which identifies the kind of error."""
        return str(self).split(" ", 1)[0]


class NotReplicated(ResponseError):
    """`NOREPL`: the requested number of copies was not confirmed in time. The outcome is UNKNOWN, not "refused".

    Nodes that received a copy are told to delete it, but a node that is unreachable at that moment keeps its copy and
    delivers the job later. So the job may run although `add` failed. Add it again only if running it twice is safe:
    make the handler idempotent, for example with a key of your own in the body. If running it twice does harm, do not
    add it again; request fewer copies instead.
    """


class QueuePaused(ResponseError):
    """`PAUSED`: the queue accepts no new jobs until it is resumed. The job was not added."""


class QueueFull(ResponseError):
    """`MAXLEN`: the queue already holds the jobs that the call, or its settings, allow. The job was not added."""


class NodeLeaving(ResponseError):
    """`LEAVING`: the node is about to leave the cluster. The client switches nodes and repeats idempotent calls."""


class ClockError(ResponseError):
    """`CLOCK`: the node accepts no new jobs and gives no claims now, because its clock is too far ahead.

    The command was not executed. The client switches nodes and repeats every call there.
    """


class BadJobId(ResponseError):
    """`BADID`: an argument is not a valid job ID; none of the IDs of the call was processed."""


class NoSuchJob(ResponseError):
    """`NOJOB`: the node does not know the job; it was acknowledged or deleted, or has expired."""


class JobAcknowledged(ResponseError):
    """`ACKED`: the job is already acknowledged, so it cannot be postponed."""


class TooLate(ResponseError):
    """`TOOLATE`: more than half of the job's time to live has passed; its delivery can no longer be postponed."""


class StaleClaim(ResponseError):
    """`STALE`: the job was delivered again, so its claim is not the last one. Stop working on the job."""


class SequenceConflict(ResponseError):
    """`SEQ`: another entry of the progress log has the number, or entries before it are missing. Read the log."""


class LogFull(ResponseError):
    """`LOGFULL`: the progress log of the job takes no more. The entry was not added."""


class NoSuchSchedule(ResponseError):
    """`NOSCHEDULE`: there is no schedule of that name."""


class AlreadyExists(ResponseError):
    """`EXISTS`: something of that name or ID exists already."""


class JobExists(AlreadyExists):
    """`EXISTS`: a job with the ID that was given is in another queue."""


class QueueExists(AlreadyExists):
    """`EXISTS`: a queue, or the catalog of ordered queues, exists already, and is not what the call asked for."""


class NoQuorum(ResponseError):
    """`NOQUORUM`: an ordered queue has no leader, because a majority of its replicas cannot be reached from the node.

    The command was not executed. Other nodes may reach the majority.
    """


class NoParent(ResponseError):
    """`NOPARENT`: too few nodes know a parent of the job, so its end might be missed. The job was not added.

    The parent was never added, or has ended and left no record: add parents with `retain_s`, or before their children.
    """


class DelayTooLong(ResponseError):
    """`TTL`: the job expires before the delay of `nack` ends. It was not returned; use a shorter delay."""


class OutOfMemory(ResponseError):
    """`OOM`: the node is at its memory limit and accepts no new jobs. The command was not executed."""


class AuthenticationRequired(ResponseError):
    """`NOAUTH`: the node requires a password and the client has none."""


class WrongPassword(ResponseError):
    """`WRONGPASS`: the user or the password is wrong, or the user is switched off."""


class NoPermission(ResponseError):
    """`NOPERM`: the rules of the user do not allow the command, or the queue. The command was not executed."""


class RateLimited(ResponseError):
    """`RATELIMIT`: the user has sent more commands in this second than allowed. The command was not executed."""


class Misconfigured(ResponseError):
    """`MISCONF`: the node cannot write its AOF and refuses changes."""


class Loading(ResponseError):
    """`LOADING`: the node is loading its AOF after a start. The command was not executed."""


BY_PREFIX: dict[str, type[ResponseError]] = {
    "NOREPL": NotReplicated,
    "EXISTS": QueueExists,
    "NOQUORUM": NoQuorum,
    "NOPARENT": NoParent,
    "PAUSED": QueuePaused,
    "MAXLEN": QueueFull,
    "LEAVING": NodeLeaving,
    "CLOCK": ClockError,
    "BADID": BadJobId,
    "NOJOB": NoSuchJob,
    "ACKED": JobAcknowledged,
    "TOOLATE": TooLate,
    "STALE": StaleClaim,
    "SEQ": SequenceConflict,
    "LOGFULL": LogFull,
    "NOSCHEDULE": NoSuchSchedule,
    "TTL": DelayTooLong,
    "OOM": OutOfMemory,
    "NOAUTH": AuthenticationRequired,
    "WRONGPASS": WrongPassword,
    "NOPERM": NoPermission,
    "RATELIMIT": RateLimited,
    "MISCONF": Misconfigured,
    "LOADING": Loading,
}
"""Prefix of an error reply -> its class; an unknown prefix is a plain `ResponseError`."""


_JOB_EXISTS = "EXISTS a job "
"""How the reply about a job begins; the others with that prefix are about queues."""


def response_error(text: str) -> ResponseError:
    """Return the exception for the text of an error reply, without its leading dash."""
    if text.startswith(_JOB_EXISTS):
        return JobExists(text)
    return BY_PREFIX.get(text.split(" ", 1)[0], ResponseError)(text)
