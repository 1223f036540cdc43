"""Error replies: what a client is told when a command is refused.

A reply error is raised where the fault is seen and written to the client by the dispatcher. The first word of its
text is the code that clients branch on (Disque command reference, "common errors"); each code that a client may want
to tell apart has one class here, and no code is compared as a bare string elsewhere.
"""

from __future__ import annotations

from typing import Final

CODES: Final[tuple[str, ...]] = (
    *("ERR", "BADID", "NOJOB", "ACKED", "TOOLATE", "TTL", "NOREPL", "EXISTS", "NOPARENT", "PAUSED", "MAXLEN", "STALE"),
    *("LEAVING", "OOM", "MISCONF", "LOADING", "NOAUTH", "WRONGPASS", "NOPERM", "RATELIMIT", "DENIED", "NOPROTO"),
    *("CLOCK", "SEQ", "LOGFULL", "NOSCHEDULE", "NOQUORUM"),
)
"""All that this broker answers with."""


SHOWN_BYTES: Final = 128
"""How much of a word an error reply repeats: a client must not get much output for a request that was refused."""
LINE_CHARACTERS: Final = 1024
"""The longest error reply."""


def shown(word: bytes) -> str:
    """A word of a request as an error reply shows it: beyond SHOWN_BYTES, it is cut."""
    text = word[:SHOWN_BYTES].decode("utf-8", "surrogateescape")
    return text if len(word) <= SHOWN_BYTES else text + "..."


class ReplyError(Exception):
    """A refused command. `text` is the reply line without the leading dash, `code` its first word."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    @property
    def code(self) -> str:
        """The word that clients branch on, for example `NOREPL`."""
        return self.text.split(" ", 1)[0]

    def encode(self) -> bytes:
        """The RESP error line, of at most LINE_CHARACTERS; line ends inside the text become blanks."""
        line = self.text[:LINE_CHARACTERS].replace("\r", " ").replace("\n", " ")
        return b"-" + line.encode("utf-8", "surrogateescape") + b"\r\n"


class CommandSyntaxError(ReplyError):
    """An option is unknown or stands in the wrong place."""

    def __init__(self) -> None:
        super().__init__("ERR syntax error")


class WrongArity(ReplyError):
    """A command has too few or too many arguments."""

    def __init__(self, command: str) -> None:
        super().__init__(f"ERR wrong number of arguments for '{command}' command")


class NotAnInteger(ReplyError):
    """An argument that must be a 64 bit integer is none."""

    def __init__(self) -> None:
        super().__init__("ERR value is not an integer or out of range")


class BadJobId(ReplyError):
    """An argument that must be a job ID has not the form of one."""

    def __init__(self) -> None:
        super().__init__("BADID Invalid Job ID format.")


class NoJob(ReplyError):
    """The job is not known to this node."""

    def __init__(self) -> None:
        super().__init__("NOJOB Job not known in the context of this node.")


class JobAcknowledged(ReplyError):
    """The job was acknowledged before: there is nothing left to work on."""

    def __init__(self) -> None:
        super().__init__("ACKED The job was already acknowledged, stop working on it.")


class TooLate(ReplyError):
    """Half of the job's time to live is over: its next delivery can no longer be postponed."""

    def __init__(self) -> None:
        super().__init__(
            "TOOLATE Half of job TTL already elapsed, you are no longer allowed to postpone the next delivery."
        )


class StaleClaim(ReplyError):
    """The job was delivered again after the delivery of this claim. `newest` is 0 if only the delivery is known."""

    def __init__(self, newest: int) -> None:
        since = f"was handed out again under claim {newest}" if newest else "was queued again by another node"
        super().__init__(f"STALE The job {since}, stop working on it")


class ResultNotKept(ReplyError):
    """ACKJOB RESULT for a job whose record nobody would keep."""

    def __init__(self) -> None:
        super().__init__("ERR nobody would keep it: add the job with RETAIN")


class SequenceError(ReplyError):
    """Entries of a progress log are missing, or another one has the number."""

    def __init__(self, why: str) -> None:
        super().__init__("SEQ " + why)


class LogFull(ReplyError):
    """The progress log of the job has as many entries or bytes as it may."""

    def __init__(self, entries: int, size_bytes: int) -> None:
        super().__init__(
            f"LOGFULL the log of a job has at most {entries} entries (job-log-entries) of {size_bytes} bytes in all "
            "(job-log-bytes)"
        )


class NoSchedule(ReplyError):
    """There is no schedule of a name."""

    def __init__(self, name: bytes) -> None:
        super().__init__(f"NOSCHEDULE there is no schedule '{shown(name)}'")


class JobExists(ReplyError):
    """The ID that was given belongs to a job in another queue."""

    def __init__(self) -> None:
        super().__init__("EXISTS a job with this ID is in another queue; give each job an ID of its own")


class QueueExists(ReplyError):
    """A queue, or the catalog of ordered queues, exists already and is not what the client asked for."""

    def __init__(self, text: str) -> None:
        super().__init__(f"EXISTS {text}")


class NoQuorum(ReplyError):
    """An ordered queue has no leader, because the majority of its replicas cannot be reached."""

    def __init__(self, queue: bytes, reachable: int, replicas: int) -> None:
        super().__init__(f"NOQUORUM {shown(queue)}: {reachable} of {replicas} replicas reachable")


class DelayTooLong(ReplyError):
    """The job would end before the delay does."""

    def __init__(self, left_s: int) -> None:
        super().__init__(
            f"TTL The job expires in {left_s} seconds, which is before the DELAY ends; use a shorter DELAY"
        )


class NotReplicated(ReplyError):
    """The wanted number of copies was not reached; the job may or may not exist somewhere."""

    def __init__(self, text: str = "Not enough reachable nodes for the requested replication level") -> None:
        super().__init__("NOREPL " + text)


class NoParent(ReplyError):
    """A parent of the job (ADDJOB AFTER) is not known, so nobody would learn that it is done."""

    def __init__(self, why: str) -> None:
        super().__init__(f"NOPARENT {why}")


class QueuePaused(ReplyError):
    """The queue is paused in input."""

    def __init__(self) -> None:
        super().__init__("PAUSED Queue paused in input, try later")


class QueueFull(ReplyError):
    """The queue holds MAXLEN jobs or more, or as much as its settings allow."""

    def __init__(self, why: str = "Queue is already longer than the specified MAXLEN count") -> None:
        super().__init__("MAXLEN " + why)


class NodeLeaving(ReplyError):
    """This node is leaving the cluster and blocks no clients any more."""

    def __init__(self) -> None:
        super().__init__("LEAVING This node is leaving the cluster, please connect to a different one")


class NodeEnding(ReplyError):
    """This node writes its file for the next run, and nothing may change meanwhile."""

    def __init__(self) -> None:
        super().__init__("LEAVING This node is shutting down, please connect to a different one")


class ClockAhead(ReplyError):
    """The clock of this node is too far ahead (`cluster-max-clock-skew`): no new jobs, no claims."""

    def __init__(self, ahead_ms: int, limit_ms: int) -> None:
        super().__init__(
            f"CLOCK The clock of this node is {ahead_ms} ms ahead of the clocks of the other nodes, at most {limit_ms} "
            "ms are allowed (cluster-max-clock-skew). Use another node. Set this clock by NTP, then restart the node"
        )


TOO_BIG: Final = "The job is too big for what is left: it needs room for itself and for copies on its way."
_WHAT_TO_DO: Final = "Acknowledge jobs, add nodes to the cluster, or raise maxmemory."


class OutOfMemory(ReplyError):
    """The node uses more memory than its limit allows, or would with this request, and could not free any."""

    def __init__(self, why: str = "") -> None:
        super().__init__(f"OOM command not allowed when used memory > 'maxmemory'. {why or _WHAT_TO_DO}")


class AuthenticationRequired(ReplyError):
    """The connection has to authenticate first."""

    def __init__(self) -> None:
        super().__init__("NOAUTH Authentication required.")


class LoginRefused(ReplyError):
    """User or password is wrong. The client gets the reply after `delay_ms`; the original's unless it named a user."""

    def __init__(self, delay_ms: int, *, named: bool) -> None:
        super().__init__(
            "WRONGPASS invalid username-password pair or user is disabled." if named else "ERR invalid password"
        )
        self.delay_ms = delay_ms


class Protected(ReplyError):
    """The node has no password and serves only clients on its own machine (`protected-mode`)."""

    def __init__(self) -> None:
        super().__init__(
            "DENIED This node has no password and listens on all addresses, so it serves only clients on its own "
            "machine (protected mode). Set requirepass, or bind to the addresses that clients may use, or set "
            "protected-mode no if the network protects the node"
        )


class TooManyUnauthenticated(ReplyError):
    """The connection is closed, because others need its place and it has not authenticated."""

    def __init__(self, which: str) -> None:
        super().__init__(
            f"ERR max number of clients reached: too many {which} have not authenticated, send AUTH right after "
            "connecting"
        )


class Unauthenticated(ReplyError):
    """The connection is closed, because it has not authenticated."""

    def __init__(self, what: str) -> None:
        super().__init__(f"ERR the connection is closed: it {what}, send AUTH right after connecting")


class NoPermission(ReplyError):
    """The rules of the user do not allow the request."""

    def __init__(self, text: str) -> None:
        super().__init__("NOPERM " + text)


class RateLimited(ReplyError):
    """The user has sent more commands in this second than its rules allow."""

    def __init__(self, user: str, rate: int) -> None:
        super().__init__(f"RATELIMIT User {user} may send {rate} commands per second to this node, try later")


class Loading(ReplyError):
    """The node is loading its append-only file."""

    def __init__(self) -> None:
        super().__init__("LOADING Disque is loading the dataset in memory")


class ProtocolError(Exception):
    """A client's bytes are no request. The connection gets one error line and is closed."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def encode(self) -> bytes:
        """The RESP error line."""
        return b"-ERR Protocol error: " + self.text.encode("latin-1") + b"\r\n"
