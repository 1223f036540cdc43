"""The options of the connector: one table from which parsing, validation, messages and the reference page follow.

Names follow Spark's Kafka connector where it has a similar option (`maxOffsetsPerTrigger` -> `maxJobsPerTrigger`); a
user who writes Kafka's name gets a message with the name here. Spark passes options as text and ignores their case.
Invalid options fail before anything is read or written. A password is kept in a `Secret`, which does not print it. The
settings of TLS cannot be pickled, so the options carry the paths of files, and each process reads its own.
"""

from __future__ import annotations

import difflib
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from disqued.client import tls_context
from disqued.client.urls import Target
from pyspark_disque.optionvalues import (
    MAX_RETAIN_S,
    STATES,
    BadOption,
    Secret,
    one_of,
    read_addresses,
    read_flag,
    read_name,
    read_names,
    read_pattern,
    read_priority,
    read_states,
    seconds,
    whole,
)

Use: TypeAlias = Literal["read", "stream", "write", "streamWrite", "results"]
"""What options are passed to: `spark.read`, `spark.readStream`, `df.write`, `df.writeStream` or `with_results`."""

READING: Final[tuple[Use, ...]] = ("read", "stream")
WRITING: Final[tuple[Use, ...]] = ("write", "streamWrite")
RESULTS: Final[tuple[Use, ...]] = ("results",)
ALWAYS: Final = READING + WRITING + RESULTS
DEFAULT_WINDOW_S: Final = 600

# --- the table --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Option:
    """One row of the table: the name, the field of `Options`, the parser, where the option applies, and its meaning.

    `default` is only for the reference page; the defaults are those of the fields. `foreign_names` are the names of
    similar options in other connectors.
    """

    name: str
    field: str
    read: Callable[[str], Any]
    uses: tuple[Use, ...]
    default: str
    text: str
    foreign_names: tuple[str, ...] = ()


OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "nodes", "nodes", read_addresses, ALWAYS, "required",
        "The addresses of the brokers: a comma-separated list of `host:port`, or a service name. One is enough: the "
        "connector discovers the others. A URL `disques://[user@]host[:port]` sets `tls`, and `user`.",
        ("disque.nodes", "kafka.bootstrap.servers", "bootstrap.servers", "servers", "host", "url"),
    ),
    Option(
        "discover", "discover", read_flag, ALWAYS, "true",
        "Whether to connect to the other nodes of the cluster that the given nodes know. `false` uses only the given "
        "nodes.",
    ),
    Option(
        "user", "user", read_name, ALWAYS, "the default user",
        "The user, sent with the password.", ("username", "kafka.sasl.username"),
    ),
    Option(
        "password", "password", Secret, ALWAYS, "none",
        "The password, sent with AUTH. Prefer `passwordFile`.", ("auth",),
    ),
    Option(
        "passwordFile", "password_file", read_name, ALWAYS, "none",
        "A file that contains the password, on the driver and on every executor, for example a mounted secret.",
    ),
    Option(
        "tls", "tls", read_flag, ALWAYS, "false",
        "Whether to use TLS and verify the nodes. The certificate of a node must be valid for its address in `nodes`, "
        "and for the one that it announces.",
        ("ssl", "kafka.security.protocol"),
    ),
    Option(
        "tlsCaFile", "tls_ca_file", read_name, ALWAYS, "those of the system",
        "A PEM file of the authorities to trust, on the driver and on every executor, for example a mounted secret.",
        ("cacert", "kafka.ssl.truststore.location"),
    ),
    Option(
        "tlsCertFile", "tls_cert_file", read_name, ALWAYS, "none",
        "A PEM file with the certificate of the client, for nodes that require one. It is needed on the driver and on "
        "every executor.",
        ("cert", "kafka.ssl.keystore.location"),
    ),
    Option(
        "tlsKeyFile", "tls_key_file", read_name, ALWAYS, "`tlsCertFile`",
        "A PEM file with the key of `tlsCertFile`, not encrypted. It is needed on the driver and on every executor.",
        ("kafka.ssl.keystore.key",),
    ),
    Option(
        "timeout", "timeout_s", seconds(1, 3600), ALWAYS, "30s",
        "How long to wait for a reply of a node.", ("commandTimeoutMs", "connectTimeoutMs"),
    ),
    Option(
        "giveUpAfter", "give_up_after_s", seconds(0, 86400), ALWAYS, "2m",
        "How long to retry after temporary errors: no node can be reached, too few nodes for the copies, a full or "
        "paused queue, or out of memory. Then the task fails.",
        ("maxRetries", "kafka.retries"),
    ),
    Option(
        "queue", "queue", read_name, READING + WRITING, "see description",
        "The queue to read or to write to. A read needs exactly one of `queue`, `queues` and `queuePattern`. A write "
        "needs this option or a column `queue`; the option overrides the column.",
        ("topic", "subscribe", "assign"),
    ),
    Option(
        "queues", "queues", read_names, READING, "see `queue`",
        "A comma-separated list of queues to read.", ("topics",),
    ),
    Option(
        "queuePattern", "queue_pattern", read_pattern, READING, "see `queue`",
        "A regular expression: reads all queues whose whole name matches. It is evaluated again for each batch.",
        ("subscribePattern",),
    ),
    Option(
        "includeMetadata", "include_metadata", read_flag, READING, "false",
        "Whether to add the columns `ctime`, `nacks`, `additional_deliveries` and `node`.", ("includeHeaders",),
    ),
    Option(
        "includeAttributes", "include_attributes", read_flag, READING, "false",
        "Whether to add the columns `priority`, `meta`, `attempts`, `attempts_before`, `reason`, `origin_queue` and "
        "`dead_since`, for example to read a queue of dead letters. A stream or a consuming read then sends a SHOW for "
        "each job, as with `includeMetadata`.",
    ),
    Option(
        "numPartitions", "num_partitions", whole(1, 100_000), READING, "2 per node",
        "The number of tasks of a batch.", ("minPartitions",),
    ),
    Option(
        "maxJobsPerTrigger", "max_jobs_per_trigger", whole(1, 1_000_000), ("stream",), "10000",
        "The maximum number of jobs in a micro-batch.", ("maxOffsetsPerTrigger", "maxRatePerPartition"),
    ),
    Option(
        "minJobsPerTrigger", "min_jobs_per_trigger", whole(1, 1_000_000), ("stream",), "1",
        "The minimum number of queued jobs that starts a micro-batch before `maxTriggerDelay`.",
        ("minOffsetsPerTrigger",),
    ),
    Option(
        "maxTriggerDelay", "max_trigger_delay_s", seconds(1), ("stream",), "15m",
        "The longest time that a micro-batch is delayed because fewer than `minJobsPerTrigger` jobs are queued.",
    ),
    Option(
        "ackMode", "ack_mode", one_of("onCommit", "fast"), READING, "onCommit",
        "How to acknowledge processed jobs: `onCommit` uses ACKJOB. `fast` uses FASTACK, which needs fewer messages, "
        "but may deliver jobs again after a failure.",
    ),
    Option(
        "failOnDataLoss", "fail_on_data_loss", read_flag, ("stream",), "true",
        "Whether to fail the query if a batch is replayed and one of its jobs no longer exists, because another client "
        "acknowledged or deleted it, or it expired. `false` continues without the job and logs a warning.",
    ),
    Option(
        "states", "states", read_states, ("read",), "queued",
        f"The states of the jobs to read, a comma-separated list of {', '.join(f'`{state}`' for state in STATES)}. "
        "With any state other than `queued`, a job has a row for each node that holds a copy.",
    ),
    Option(
        "pushDownFilters", "push_down_filters", read_flag, ("read",), "false",
        "Whether the nodes evaluate filters on `queue` and `state`. Requires Spark's setting "
        "`spark.sql.python.filterPushdown.enabled`. Load a new DataFrame for each query, because Spark reuses the plan "
        "of the last filter.",
        ("pushDownPredicate",),
    ),
    Option(
        "consume", "consume", read_flag, ("read",), "false",
        "Whether to remove the jobs from the queue and acknowledge them, instead of only reading them.",
    ),
    Option(
        "maxJobs", "max_jobs", whole(1, 10**12), ("read",), "all",
        "The maximum number of rows of a batch read.", ("limit",),
    ),
    Option(
        "mode", "mode", one_of("atLeastOnce", "deduplicated"), WRITING, "atLeastOnce",
        "How to handle rows that may have been added already: `atLeastOnce` adds them again. `deduplicated` adds each "
        "row with a key, by which the broker recognizes duplicates.",
    ),
    Option(
        "window", "window_s", seconds(1, 86400), WRITING, "10m",
        "How long the broker remembers a key, for `deduplicated`. Make it longer than a task with all its attempts, or "
        "the restart of a stream, can take. Each key uses about 270 bytes of memory at the broker.",
    ),
    Option(
        "writeId", "write_id", read_name, ("write",), "random",
        "The name of this write in the keys of `deduplicated`. If you run a write again with the same name, only the "
        "missing rows are added.",
        ("transactionalId", "kafka.transactional.id", "txnAppId"),
    ),
    Option("delay", "delay_s", seconds(0), WRITING, "0", "The time before a job is delivered first."),
    Option(
        "retry", "retry_s", seconds(0), WRITING, "the broker's",
        "The time after which a job that is not acknowledged is delivered again. 0 means at most once, and requires "
        "`replicate` 1.",
    ),
    Option(
        "ttl", "ttl_s", seconds(1), WRITING, "the broker's",
        "The time after which a job expires, whether it was delivered or not.",
    ),
    Option(
        "replicate", "replicate", whole(1, 65535), WRITING, "the broker's",
        "The number of nodes that must have a copy of a job before it counts as added.",
    ),
    Option(
        "replicateTimeout", "replicate_timeout_s", seconds(1, 3600), WRITING, "5s",
        "How long the broker may take to place the copies before it reports an error.",
    ),
    Option(
        "maxlen", "maxlen", whole(1, 10**12), WRITING, "none",
        "The maximum length of the queue on a node. The write waits while the queue is full.",
    ),
    Option(
        "priority", "priority", read_priority, WRITING, "0",
        "The priority of the jobs: those with a higher one are delivered first. Not for nodes of the original.",
    ),
    Option(
        "async", "asynchronous", read_flag, WRITING, "false",
        "Whether to add jobs without waiting for the copies. This is faster, but a node that fails may lose jobs that "
        "it has just accepted.",
    ),
    Option(
        "retain", "retain_s", seconds(0, MAX_RETAIN_S), WRITING, "the queue's",
        "How long the nodes remember how a job ended, and with which result, at most 30 days.",
    ),
    Option(
        "otherwise", "otherwise", one_of("dead", "run", "drop"), WRITING, "dead",
        "What happens to a job if one that it waits for (column `after`) can no longer be done: `dead` makes it a dead "
        "letter, `run` runs it without, `drop` deletes it.",
    ),
    Option(
        "wait", "wait_s", seconds(0), RESULTS, "0",
        "How long a task waits for jobs that have not ended, from its first row on. Then they have the outcome "
        "`waiting`.",
    ),
)  # fmt: skip

_BY_NAME: Final = {option.name.lower(): option for option in OPTIONS}
_FOREIGN_NAMES: Final = {name.lower(): option.name for option in OPTIONS for name in option.foreign_names}
_SPARK_OPTIONS: Final = frozenset({"checkpointlocation", "queryname", "outputmode", "triggerinterval"})
"""Spark's own options, which it passes along with those of a streaming write."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options as values. Times are in seconds."""

    nodes: tuple[str, ...]
    discover: bool = True
    user: str | None = None
    password: Secret | None = field(default=None, repr=False)
    password_file: str | None = None
    tls: bool = False
    tls_ca_file: str | None = None
    tls_cert_file: str | None = None
    tls_key_file: str | None = None
    timeout_s: int = 30
    give_up_after_s: int = 120
    queue: str | None = None
    queues: tuple[str, ...] | None = None
    queue_pattern: str | None = None
    include_metadata: bool = False
    include_attributes: bool = False
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
    priority: int | None = None
    asynchronous: bool = False
    retain_s: int | None = None
    otherwise: str | None = None
    wait_s: int = 0

    @property
    def deduplicated(self) -> bool:
        """Whether rows are added under keys."""
        return self.mode == "deduplicated"

    def queue_names(self) -> tuple[str, ...] | None:
        """Return the queues to read; None if there is a pattern instead."""
        return (self.queue,) if self.queue is not None else self.queues

    def reveal_password(self) -> str | None:
        """Return the password, from its option or from its file, which is read on each call.

        Raises:
            BadOption: the file cannot be read.
        """
        if self.password_file is None:
            return None if self.password is None else self.password.reveal()
        try:
            return Path(self.password_file).read_text(encoding="utf-8").rstrip("\r\n")
        except OSError as error:
            raise BadOption(f"cannot read the file of the option passwordFile: {error}") from None

    def tls_files(self) -> dict[str, str | None]:
        """Return the paths of the files of TLS by option."""
        return {"tlsCaFile": self.tls_ca_file, "tlsCertFile": self.tls_cert_file, "tlsKeyFile": self.tls_key_file}

    def tls_settings(self) -> ssl.SSLContext | None:
        """Return the settings of TLS, from the files, which are read on each call; None without TLS.

        Raises:
            BadOption: a file cannot be read, or does not contain what it must.
        """
        if not self.tls:
            return None
        try:
            return tls_context(cafile=self.tls_ca_file, certfile=self.tls_cert_file, keyfile=self.tls_key_file)
        except OSError as error:
            given = ", ".join(f"{name} {path}" for name, path in self.tls_files().items() if path is not None)
            raise BadOption(f"cannot use the files of TLS ({given}): {error}") from None


def parse(given: Mapping[str, str], use: Use) -> Options:
    """Parse the options of one read or write.

    Raises:
        BadOption: an option is unknown, missing or invalid, or conflicts with another; the message says what to do.
    """
    values: dict[str, Any] = {}
    for name, text in given.items():
        if name.lower() in _SPARK_OPTIONS:
            continue
        option = _BY_NAME.get(name.lower())
        if option is None:
            raise BadOption(_unknown(name))
        if use not in option.uses:
            raise BadOption(f"the option {option.name} {_misplaced(option, use)}")
        try:
            values[option.field] = option.read(text)
        except BadOption as error:
            raise BadOption(f"the option {option.name} {error}{_shown(option, text)}") from None
    if "nodes" not in values:
        raise BadOption('the option nodes is missing; add .option("nodes", "host:7711")')
    options = Options(**_with_target(values))
    _refuse_conflicts(options, use)
    return options


def _shown(option: Option, text: str) -> str:
    """Return the end of a message with an invalid value; empty if the value is, or may contain, a password."""
    return "" if option.name == "password" or (option.name == "nodes" and "@" in text) else f", not {text!r}"


def _with_target(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with what the URLs in `nodes` say.

    Raises:
        BadOption: another option contradicts it.
    """
    target: Target = values["nodes"]
    said = {name: value for name, value in (("tls", target.tls), ("user", target.user)) if value}
    for name, value in said.items():
        if values.get(name, value) != value:
            raise BadOption(f"the option {name} and the URL in the option nodes conflict; set only one of them")
    return {**values, **said, "nodes": target.nodes}


def _unknown(name: str) -> str:
    if name.lower() == "path":
        return "a queue has no path; call .load() or .save() without one, and set the option queue"
    right = _FOREIGN_NAMES.get(name.lower())
    if right is None:
        close = difflib.get_close_matches(name.lower(), _BY_NAME, n=1, cutoff=0.6)
        right = _BY_NAME[close[0]].name if close else None
    if right is not None:
        return f"unknown option {name}; use {right}"
    return f"unknown option {name}; the options are {', '.join(option.name for option in OPTIONS)}"


_PLACES: Final[dict[Use, str]] = {
    "read": "spark.read", "stream": "spark.readStream", "write": "df.write", "streamWrite": "df.writeStream",
    "results": "with_results",
}  # fmt: skip


def _misplaced(option: Option, use: Use) -> str:
    places = " and ".join(_PLACES[place] for place in option.uses)
    return f"does not apply to {_PLACES[use]}, only to {places}"


def _conflicts(options: Options, use: Use) -> tuple[tuple[bool, str], ...]:
    """Return the possible conflicts, each with whether it exists and its message."""
    queues = [
        option.name
        for option in OPTIONS
        if option.field in {"queue", "queues", "queue_pattern"} and getattr(options, option.field) is not None
    ]
    delay_s, ttl_s, at_most_once = options.delay_s, options.ttl_s, options.retry_s == 0
    minimum, maximum = options.min_jobs_per_trigger, options.max_jobs_per_trigger
    return (
        (
            use in READING and not queues,
            "no queue to read; set one of the options queue, queues and queuePattern",
        ),
        (
            len(queues) > 1,
            f"the options {' and '.join(queues)} conflict; set only one of them",
        ),
        (
            options.password is not None and options.password_file is not None,
            "the options password and passwordFile conflict; set only one of them",
        ),
        (
            options.user is not None and options.password is None and options.password_file is None,
            f"the user {options.user} needs a password; set the option passwordFile",
        ),
        *(
            (
                value is not None and not options.tls,
                f'the option {name} requires TLS; add .option("tls", "true")',
            )
            for name, value in options.tls_files().items()
        ),
        (
            options.tls_key_file is not None and options.tls_cert_file is None,
            "the option tlsKeyFile requires the option tlsCertFile, the certificate of the key",
        ),
        (
            minimum > maximum,
            f"minJobsPerTrigger ({minimum}) must not exceed maxJobsPerTrigger ({maximum})",
        ),
        (
            options.consume and options.states != ("queued",),
            "the options consume and states conflict: only queued jobs can be consumed; remove states",
        ),
        *(
            (
                value is not None and not options.deduplicated,
                f'the option {name} requires the mode deduplicated; add .option("mode", "deduplicated")',
            )
            for name, value in (("writeId", options.write_id), ("window", options.window_s))
        ),
        (
            at_most_once and options.replicate not in {None, 1},
            f"retry 0 means at most once and requires replicate 1, not {options.replicate}",
        ),
        (
            at_most_once and options.deduplicated,
            "retry 0 means at most once and conflicts with the mode deduplicated; remove one of them",
        ),
        (
            delay_s is not None and ttl_s is not None and delay_s >= ttl_s,
            f"the delay of {delay_s} s must be shorter than the ttl of {ttl_s} s, or the jobs expire undelivered",
        ),
    )


def _refuse_conflicts(options: Options, use: Use) -> None:
    for wrong, text in _conflicts(options, use):
        if wrong:
            raise BadOption(text)
