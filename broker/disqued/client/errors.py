"""What can go wrong, as types.

Two families. A `ResponseError` is an answer: the node read the command and refused it; the first word of its text, the
prefix, chooses the class from the one table below. The others mean that there was no answer, and differ in what the
caller may conclude:

- `ConnectionFailed`: the command was never sent, so it did not happen.
- `ConnectionLost`: the command was sent and no answer came, so it may or may not have happened.

`NotReplicated` (`NOREPL`) reads like a refusal but leaves the same doubt as `ConnectionLost`; see its text.
"""

from __future__ import annotations


class DisqueError(Exception):
    """The base of all errors of this package."""


class ConnectionFailed(DisqueError, ConnectionError):
    """No node could be reached, and the command was not sent: trying again later is always safe."""


class ConnectionLost(DisqueError, ConnectionError):
    """The connection broke, or stayed silent too long, after the command was sent: it may have been carried out.

    Calls that may safely be made twice are repeated by the client itself, so this error comes from the others, or
    after all attempts. For `add` it means "unknown", as `NotReplicated` does.
    """


class ClientClosed(DisqueError):
    """The client was used after `close()`."""


class UnexpectedReply(DisqueError):
    """The node answered in a shape that this command does not have: it is no Disque node, or a foreign version."""


class ResponseError(DisqueError):
    """The node refused the command. `prefix` is the first word of the text, for example `ERR`."""

    @property
    def prefix(self) -> str:
        """The word that names the kind of error."""
        return str(self).split(" ", 1)[0]


class NotReplicated(ResponseError):
    """`NOREPL`: the wanted number of copies was not confirmed. It means UNKNOWN, not "refused".

    Nodes that got a copy are told to delete it, but one that is cut off at that moment keeps it and delivers the job
    later. So the job may run although `add` failed. Adding it again is safe when running it twice is: make the handler
    idempotent, for instance with a key of your own in the body, and call `add` again. Do not add again when a second
    run does harm; ask for fewer copies instead.
    """


class QueuePaused(ResponseError):
    """`PAUSED`: the queue takes no new jobs until somebody resumes it. The job was not added."""


class QueueFull(ResponseError):
    """`MAXLEN`: the queue already holds as many jobs as the call allows. The job was not added."""


class NodeLeaving(ResponseError):
    """`LEAVING`: the node is about to leave the cluster. The client turns to another one by itself where it may."""


class BadJobId(ResponseError):
    """`BADID`: an argument has not the form of a job ID; none of the IDs of the call was processed."""


class NoSuchJob(ResponseError):
    """`NOJOB`: this node does not know the job; it was acknowledged, deleted, or has expired."""


class JobAcknowledged(ResponseError):
    """`ACKED`: the job is finished already, so there is nothing left to postpone."""


class TooLate(ResponseError):
    """`TOOLATE`: more than half of the job's life has passed, its next delivery can no longer be postponed."""


class OutOfMemory(ResponseError):
    """`OOM`: the node is at its memory limit and takes no new jobs. The command was not carried out."""


class AuthenticationRequired(ResponseError):
    """`NOAUTH`: the node wants a password and this client has none."""


class Misconfigured(ResponseError):
    """`MISCONF`: the node can not write its log to disk and refuses changes."""


class Loading(ResponseError):
    """`LOADING`: the node has just started and still reads its log. The command was not carried out."""


BY_PREFIX: dict[str, type[ResponseError]] = {
    "NOREPL": NotReplicated,
    "PAUSED": QueuePaused,
    "MAXLEN": QueueFull,
    "LEAVING": NodeLeaving,
    "BADID": BadJobId,
    "NOJOB": NoSuchJob,
    "ACKED": JobAcknowledged,
    "TOOLATE": TooLate,
    "OOM": OutOfMemory,
    "NOAUTH": AuthenticationRequired,
    "MISCONF": Misconfigured,
    "LOADING": Loading,
}
"""First word of an error reply -> the class that is raised; any other word is a plain `ResponseError`."""


def response_error(text: str) -> ResponseError:
    """The error for the text of an error reply, without its leading dash."""
    return BY_PREFIX.get(text.split(" ", 1)[0], ResponseError)(text)
