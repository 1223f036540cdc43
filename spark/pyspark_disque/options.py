"""What can be said with `.option(...)`: one table, which reading, checking, messages and the reference page share.

Names follow Spark's Kafka connector where there is a cousin (`maxOffsetsPerTrigger` -> `maxJobsPerTrigger`); who writes
Kafka's name is told ours. Spark hands options over as text and ignores their case. Bad ones fail before anything is
done, with the name of the right one. A password is kept in a `Secret`, which shows itself to nobody.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from disqued.client.nodes import parse_address

Use: TypeAlias = Literal["read", "stream", "write", "streamWrite"]
"""What a set of options is for: `spark.read`, `spark.readStream`, `df.write`, `df.writeStream`."""

READING: Final[tuple[Use, ...]] = ("read", "stream")
WRITING: Final[tuple[Use, ...]] = ("write", "streamWrite")
ALWAYS: Final = READING + WRITING
DEFAULT_WINDOW_S: Final = 600
STATES: Final = ("queued", "active", "wait-repl", "acked")
MAX_SECONDS: Final = (1 << 32) - 1
"""Times have 32 bits in the broker."""


class BadOption(ValueError):
    """An option that is unknown, missing, can not be read, or clashes with another one."""


class Secret(str):
    """Text that does not show itself: neither in messages nor in plans."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"

    def __str__(self) -> str:
        return "***"

    def reveal(self) -> str:
        """The text."""
        return str.__str__(self)

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return Secret, (self.reveal(),)


# --- how texts are read -----------------------------------------------------------------------------------------------


def _whole(least: int, most: int) -> Callable[[str], int]:
    """Whole numbers between two bounds."""

    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text.strip()) or not least <= int(text) <= most:
            raise BadOption(f"is a whole number between {least} and {most}")
        return int(text)

    return read


_UNITS_S: Final = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def _seconds(least: int, most: int = MAX_SECONDS) -> Callable[[str], int]:
    """Times: `30`, `30s`, `15m`, `2h`, `1d`."""

    def read(text: str) -> int:
        match = re.fullmatch(r"([0-9]{1,12})\s*(s|m|min|h|d)?", text.strip().lower())
        seconds = int(match[1]) * _UNITS_S[match[2] or ""] if match else -1
        if not least <= seconds <= most:
            raise BadOption(f"is a time such as 30, 30s, 15m or 2h, at least {least} s and at most {most} s")
        return seconds

    return read


def read_flag(text: str) -> bool:
    """`true` or `false`."""
    if text.strip().lower() not in {"true", "false"}:
        raise BadOption("is true or false")
    return text.strip().lower() == "true"


def _one_of(*words: str) -> Callable[[str], str]:
    """One of some words, in any case."""

    def read(text: str) -> str:
        for word in words:
            if word.lower() == text.strip().lower():
                return word
        raise BadOption(f"is one of {', '.join(words)}")

    return read


def read_names(text: str) -> tuple[str, ...]:
    """Names with commas between them, each once."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise BadOption("names at least one, with commas between them")
    return names


def _name(text: str) -> str:
    if not text:
        raise BadOption("is not empty")
    return text


def _states(text: str) -> tuple[str, ...]:
    states = tuple(name.lower() for name in read_names(text))
    if not set(states) <= set(STATES):
        raise BadOption(f"names some of {', '.join(STATES)}, with commas between them")
    return states


def _addresses(text: str) -> tuple[str, ...]:
    addresses = read_names(text)
    for address in addresses:
        try:
            parse_address(address)
        except ValueError as error:
            raise BadOption(f"is a list of addresses, host:port or a service's name: {error}") from None
    return addresses


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise BadOption(f"is a regular expression of Python: {error}") from None
    return _name(text)


# --- the table --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Option:
    """One row: the name, the field of `Options` that it sets, how it is read, where it has a meaning, and why.

    `default` is for people: the defaults themselves are those of the fields. `cousins` are names in other connectors.
    """

    name: str
    field: str
    read: Callable[[str], Any]
    uses: tuple[Use, ...]
    default: str
    text: str
    cousins: tuple[str, ...] = ()


OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "nodes", "nodes", _addresses, ALWAYS, "required",
        "Where the brokers are: `host:port` with commas between them, or the name of a service. One is enough, the "
        "others are learned from it.",
        ("disque.nodes", "kafka.bootstrap.servers", "bootstrap.servers", "servers", "host", "url"),
    ),
    Option(
        "discover", "discover", read_flag, ALWAYS, "true",
        "Whether to use the addresses that the nodes tell of each other. `false` keeps to those given.",
    ),
    Option("password", "password", Secret, ALWAYS, "none", "Sent with AUTH. Better `passwordFile`.", ("auth",)),
    Option(
        "passwordFile", "password_file", _name, ALWAYS, "none",
        "A file with the password, on the driver and on each executor: a mounted secret.",
    ),
    Option(
        "timeout", "timeout_s", _seconds(1, 3600), ALWAYS, "30s",
        "The longest silence of a node that owes an answer.", ("commandTimeoutMs", "connectTimeoutMs"),
    ),
    Option(
        "giveUpAfter", "give_up_after_s", _seconds(0, 86400), ALWAYS, "2m",
        "How long to try again what fails for a reason that may pass: no node can be reached, too few copies, a full "
        "or paused queue, no memory. Then the task fails.",
        ("maxRetries", "kafka.retries"),
    ),
    Option(
        "queue", "queue", _name, ALWAYS, "one of three",
        "The queue to read, or to write to (then it wins over the column `queue`).", ("topic", "subscribe", "assign"),
    ),
    Option(
        "queues", "queues", read_names, READING, "one of three",
        "Several queues, with commas between them.", ("topics",),
    ),
    Option(
        "queuePattern", "queue_pattern", _pattern, READING, "one of three",
        "All queues whose whole name matches this regular expression; looked for anew for each batch.",
        ("subscribePattern",),
    ),
    Option(
        "includeMetadata", "include_metadata", read_flag, READING, "false",
        "Adds the columns `ctime`, `nacks`, `additional_deliveries` and `node`.", ("includeHeaders",),
    ),
    Option(
        "numPartitions", "num_partitions", _whole(1, 100_000), READING, "2 for each node",
        "Into how many tasks a batch is cut.", ("minPartitions",),
    ),
    Option(
        "maxJobsPerTrigger", "max_jobs_per_trigger", _whole(1, 1_000_000), ("stream",), "10000",
        "The most jobs of one micro-batch.", ("maxOffsetsPerTrigger", "maxRatePerPartition"),
    ),
    Option(
        "minJobsPerTrigger", "min_jobs_per_trigger", _whole(1, 1_000_000), ("stream",), "1",
        "Begins no micro-batch while fewer jobs wait, but for `maxTriggerDelay`.", ("minOffsetsPerTrigger",),
    ),
    Option(
        "maxTriggerDelay", "max_trigger_delay_s", _seconds(1), ("stream",), "15m",
        "The longest that jobs wait for `minJobsPerTrigger` of them.",
    ),
    Option(
        "ackMode", "ack_mode", _one_of("onCommit", "fast"), READING, "onCommit",
        "How jobs that were processed are finished: ACKJOB, or `fast` for FASTACK, which costs fewer messages and may "
        "deliver again after a failure.",
    ),
    Option(
        "failOnDataLoss", "fail_on_data_loss", read_flag, ("stream",), "true",
        "Whether the query fails when a batch has to be read again and a job of it is gone: finished or deleted by "
        "somebody else, or expired. `false` goes on without it and says so in the log.",
    ),
    Option(
        "states", "states", _states, ("read",), "queued",
        "Which jobs a batch read shows. With more than `queued` a job has a row for each node that keeps it.",
    ),
    Option(
        "pushDownFilters", "push_down_filters", read_flag, ("read",), "false",
        "Has the nodes do filters on `queue` and `state`. Wants Spark's `spark.sql.python.filterPushdown.enabled`, and "
        "a frame that is loaded anew for each question: Spark goes on using the plan of the last filter.",
        ("pushDownPredicate",),
    ),
    Option(
        "consume", "consume", read_flag, ("read",), "false",
        "Takes the jobs out of the queue and acknowledges them, instead of only looking.",
    ),
    Option("maxJobs", "max_jobs", _whole(1, 10**12), ("read",), "all", "The most rows of a batch read.", ("limit",)),
    Option(
        "mode", "mode", _one_of("atLeastOnce", "deduplicated"), WRITING, "atLeastOnce",
        "What happens to rows that may have been added already: `atLeastOnce` adds them again, `deduplicated` adds "
        "them under a key, so that the broker knows them.",
    ),
    Option(
        "window", "window_s", _seconds(1, 86400), WRITING, "10m",
        "How long the broker knows a key, which takes some 270 bytes there. Longer than a task with all its attempts, "
        "or the restart of a stream, may take.",
    ),
    Option(
        "writeId", "write_id", _name, ("write",), "a new one",
        "Names this write for the keys of `deduplicated`: the same write, started again, adds only what is missing.",
        ("transactionalId", "kafka.transactional.id", "txnAppId"),
    ),
    Option("delay", "delay_s", _seconds(0), WRITING, "0", "Waits so long before the first delivery."),
    Option(
        "retry", "retry_s", _seconds(0), WRITING, "the broker's",
        "Delivers again what is not acknowledged for so long; 0 is at most once and needs `replicate` 1.",
    ),
    Option("ttl", "ttl_s", _seconds(1), WRITING, "the broker's", "Forgets the job after so long, delivered or not."),
    Option(
        "replicate", "replicate", _whole(1, 65535), WRITING, "the broker's",
        "How many nodes have the job before it counts as added.",
    ),
    Option(
        "replicateTimeout", "replicate_timeout_s", _seconds(1, 3600), WRITING, "5s",
        "How long the broker may try to place the copies before it says that it could not.",
    ),
    Option(
        "maxlen", "maxlen", _whole(1, 10**12), WRITING, "none",
        "Waits while the queue has so many jobs on the node.",
    ),
    Option(
        "async", "asynchronous", read_flag, WRITING, "false",
        "Does not wait for the copies: faster, and a node that dies may lose jobs that it took a moment ago.",
    ),
)  # fmt: skip

_BY_NAME: Final = {option.name.lower(): option for option in OPTIONS}
_COUSINS: Final = {cousin.lower(): option.name for option in OPTIONS for cousin in option.cousins}
_OF_SPARK: Final = frozenset({"checkpointlocation", "queryname", "outputmode", "triggerinterval"})
"""What Spark itself hands on with the options of a stream that is written."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options as values. Times are in seconds."""

    nodes: tuple[str, ...]
    discover: bool = True
    password: Secret | None = field(default=None, repr=False)
    password_file: str | None = None
    timeout_s: int = 30
    give_up_after_s: int = 120
    queue: str | None = None
    queues: tuple[str, ...] | None = None
    queue_pattern: str | None = None
    include_metadata: bool = False
    num_partitions: int | None = None
    max_jobs_per_trigger: int = 10_000
    min_jobs_per_trigger: int = 1
    max_trigger_delay_s: int = 900
    ack_mode: str = "onCommit"
    fail_on_data_loss: bool = True
    states: tuple[str, ...] = ("queued",)
    push_down_filters: bool = False
    consume: bool = False
    max_jobs: int | None = None
    mode: str = "atLeastOnce"
    window_s: int | None = None
    write_id: str | None = None
    delay_s: int | None = None
    retry_s: int | None = None
    ttl_s: int | None = None
    replicate: int | None = None
    replicate_timeout_s: int = 5
    maxlen: int | None = None
    asynchronous: bool = False

    @property
    def deduplicated(self) -> bool:
        """Whether rows are added under keys."""
        return self.mode == "deduplicated"

    def queue_names(self) -> tuple[str, ...] | None:
        """The queues to read; None when a pattern says which."""
        return (self.queue,) if self.queue is not None else self.queues

    def reveal_password(self) -> str | None:
        """The password, from its option or from its file, for a connection that is made now.

        Raises:
            BadOption: the file can not be read.
        """
        if self.password_file is None:
            return None if self.password is None else self.password.reveal()
        try:
            return Path(self.password_file).read_text(encoding="utf-8").rstrip("\r\n")
        except OSError as error:
            raise BadOption(f"the option passwordFile names a file that can not be read: {error}") from None


def parse(given: Mapping[str, str], use: Use) -> Options:
    """The options of one read or write.

    Raises:
        BadOption: one is unknown, missing, wrong, or clashes with another; the message says what to write.
    """
    values: dict[str, Any] = {}
    for name, text in given.items():
        if name.lower() in _OF_SPARK:
            continue
        option = _BY_NAME.get(name.lower())
        if option is None:
            raise BadOption(_unknown(name))
        if use not in option.uses:
            raise BadOption(f"the option {option.name} {_misplaced(option, use)}")
        try:
            values[option.field] = option.read(text)
        except BadOption as error:
            shown = "" if option.name == "password" else f", not {text!r}"
            raise BadOption(f"the option {option.name} {error}{shown}") from None
    if "nodes" not in values:
        raise BadOption('the option nodes is missing: .option("nodes", "host:7711")')
    options = Options(**values)
    _refuse_clashes(options, use)
    return options


def _unknown(name: str) -> str:
    if name.lower() == "path":
        return "a queue has no path: write .load() or .save() without one, and name the queue with the option queue"
    right = _COUSINS.get(name.lower())
    if right is None:
        close = difflib.get_close_matches(name.lower(), _BY_NAME, n=1, cutoff=0.6)
        right = _BY_NAME[close[0]].name if close else None
    if right is not None:
        return f"there is no option {name}: it is called {right} here"
    return f"there is no option {name}: the options are {', '.join(option.name for option in OPTIONS)}"


_PLACES: Final[dict[Use, str]] = {
    "read": "spark.read", "stream": "spark.readStream", "write": "df.write", "streamWrite": "df.writeStream",
}  # fmt: skip


def _misplaced(option: Option, use: Use) -> str:
    places = " and ".join(_PLACES[place] for place in option.uses)
    return f"has no meaning for {_PLACES[use]}, only for {places}"


def _clashes(options: Options, use: Use) -> tuple[tuple[bool, str], ...]:
    """What must not be, and what to say then."""
    queues = [
        option.name
        for option in OPTIONS
        if option.field in {"queue", "queues", "queue_pattern"} and getattr(options, option.field) is not None
    ]
    delay_s, ttl_s, at_most_once = options.delay_s, options.ttl_s, options.retry_s == 0
    least, most = options.min_jobs_per_trigger, options.max_jobs_per_trigger
    return (
        (
            use in READING and not queues,
            "say what to read with one of the options queue, queues and queuePattern",
        ),
        (
            len(queues) > 1,
            f"the options {' and '.join(queues)} clash: give one of them",
        ),
        (
            options.password is not None and options.password_file is not None,
            "the options password and passwordFile clash: give one of them",
        ),
        (
            least > most,
            f"minJobsPerTrigger ({least}) is more than maxJobsPerTrigger ({most}): such a batch can not be",
        ),
        (
            options.consume and options.states != ("queued",),
            "the options consume and states clash: only queued jobs can be consumed",
        ),
        *(
            (
                value is not None and not options.deduplicated,
                f'the option {name} is for the mode deduplicated: add .option("mode", "deduplicated")',
            )
            for name, value in (("writeId", options.write_id), ("window", options.window_s))
        ),
        (
            at_most_once and options.replicate not in {None, 1},
            "retry 0 is at most once, for which replicate has to be 1",
        ),
        (
            at_most_once and options.deduplicated,
            "retry 0 is at most once and the mode deduplicated is not: rows that may be lost need no key",
        ),
        (
            delay_s is not None and ttl_s is not None and delay_s >= ttl_s,
            f"the delay of {delay_s} s is not shorter than the ttl of {ttl_s} s: no job would be delivered",
        ),
    )


def _refuse_clashes(options: Options, use: Use) -> None:
    for wrong, text in _clashes(options, use):
        if wrong:
            raise BadOption(text)
