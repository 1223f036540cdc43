"""The ends of jobs as columns: `with_results` asks the nodes about the job ID of each row, and may wait.

Each task asks one node about a slice of rows at a time, and another node if that one fails. The requests (RESULT and
WAITJOB) change nothing, so they can be repeated at any node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StringType

from disqued.client import BadJobId, Client, DisqueError, JobFate
from pyspark_disque.brokers import Brokers, is_retryable
from pyspark_disque.clock import Clock, RetryDeadline
from pyspark_disque.options import Options, parse
from pyspark_disque.optionvalues import BadOption
from pyspark_disque.senders import AnyNode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

T = TypeVar("T")

COLUMNS: Final = {"outcome": "string", "ended": "timestamp", "claim": "bigint", "result": "binary"}
_SCHEMA: Final = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
_END: Final = "_disque_end"
SLICE_ROWS: Final = 512
"""The number of jobs asked about at once: about half of what RESULT and WAITJOB take."""
WAIT_S: Final = 10.0
"""How long a node waits for jobs before it is asked again, so that a node that hangs is noticed."""


def with_results(frame: DataFrame, id_column: str, **options: str | int | bool) -> DataFrame:
    """Return the DataFrame with how the job of each row ended: columns `outcome`, `ended`, `claim` and `result`.

    The columns are null if no node knows the job. A task waits for jobs that have not ended, for the option `wait`, and
    occupies its core meanwhile. Works with batches and streams.

    Args:
        frame: The rows.
        id_column: The column with job IDs, text; null has no job.
        options: The options of the connector for the connection, for example `nodes`, and `wait`.

    Raises:
        BadOption: an option or a column is wrong.
    """
    parsed = parse({name: str(value) for name, value in options.items()}, "results")
    schema = frame.schema
    names = schema.fieldNames()
    if id_column not in names:
        raise BadOption(f"no column {id_column} with job IDs; the columns are {', '.join(names)}")
    if not isinstance(schema[id_column].dataType, StringType):
        raise BadOption(f"the column {id_column} must be string, not {schema[id_column].dataType.simpleString()}")
    taken = {name.lower() for name in names} & COLUMNS.keys()
    if taken:
        raise BadOption(f"the DataFrame has a column {min(taken)} already; rename or drop it")
    # Not deterministic, so that Spark asks once for all four columns. `mapInArrow` requires pandas.
    ask = arrow_udf(ResultReader(parsed).ends, _SCHEMA).asNondeterministic()  # type: ignore[call-overload]  # it has hints
    return frame.select("*", ask(frame[id_column]).alias(_END)).select("*", f"{_END}.*").drop(_END)


class BadId(ValueError):
    """A row has something else than a job ID."""


@dataclass(frozen=True, slots=True)
class ResultReader:
    """Everything that a task needs."""

    options: Options

    def ends(self, columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
        """Yield a column of ends for each column of job IDs, in a task."""
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        clock = Clock()
        with Brokers(self.options) as brokers:
            asking = FateAsking(brokers, AnyNode(brokers, partition, clock.now_s), self.options, clock)
            for column in columns:
                ids: list[str | None] = column.to_pylist()
                slices = (ids[start : start + SLICE_ROWS] for start in range(0, len(ids), SLICE_ROWS))
                yield _struct([fate for part in slices for fate in asking.fates(part)])


class FateAsking:
    """Asks what became of jobs, in one task. The time for waiting begins when it is made."""

    def __init__(self, brokers: Brokers, route: AnyNode, options: Options, clock: Clock) -> None:
        self._brokers = brokers
        self._route = route
        self._give_up_after_s = options.give_up_after_s
        self._clock = clock
        self._until_s = clock.now_s() + options.wait_s

    def fates(self, ids: Sequence[str | None]) -> list[JobFate | None]:
        """Return what the nodes know about each job, once all have ended or the time is over.

        Raises:
            BadId: a text is no job ID.
            DisqueError: no node can be asked.
        """
        found = self._ask([job_id for job_id in dict.fromkeys(ids) if job_id is not None])
        waiting = [job_id for job_id, fate in found.items() if fate is not None and fate.outcome == "waiting"]
        if waiting and self._wait(waiting):
            found.update(self._ask(waiting))
        return [None if job_id is None else found[job_id] for job_id in ids]

    def _ask(self, ids: Sequence[str]) -> dict[str, JobFate | None]:
        return self._at_a_node(partial(_fates_at, ids=ids))

    def _wait(self, ids: Sequence[str]) -> bool:
        """Wait until all jobs have ended or the time is over. False if it was over before."""
        has_waited = False
        while (left_s := self._until_s - self._clock.now_s()) > 0:
            has_waited = True
            wait_ms = max(round(min(left_s, WAIT_S) * 1000), 1)
            if self._at_a_node(partial(_have_ended, ids=ids, wait_ms=wait_ms)):
                break
        return has_waited

    def _at_a_node(self, action: Callable[[Client], T]) -> T:
        """Run an action, again at another node after a temporary error, until `giveUpAfter`."""
        deadline = RetryDeadline(self._give_up_after_s, self._clock)
        address = ""
        while True:
            try:
                address = self._route.address(0)
                answer = action(self._brokers.at(address))
            except DisqueError as error:
                if not is_retryable(error):
                    raise
                self._route.failed(address, error)
                deadline.retry_or_raise(error)
            else:
                self._route.worked(address)
                return answer


def _fates_at(client: Client, ids: Sequence[str]) -> dict[str, JobFate | None]:
    """Ask a node about jobs. Halves find the text that is no job ID: the node does not say which one it is."""
    try:
        return client.results(ids) if ids else {}
    except BadJobId:
        if len(ids) == 1:
            raise BadId(f"{ids[0]!r} is not a job ID") from None
        half = len(ids) // 2
        return _fates_at(client, ids[:half]) | _fates_at(client, ids[half:])


def _have_ended(client: Client, ids: Sequence[str], wait_ms: int) -> bool:
    """Have a node wait until jobs have ended, and return whether they have."""
    return client.execute("WAITJOB", *ids, "TIMEOUT", wait_ms, wait_s=wait_ms / 1000) is not None


def _struct(fates: Sequence[JobFate | None]) -> pa.Array:
    """Return the ends of jobs as an Arrow array."""
    outcomes = [None if fate is None else fate.outcome for fate in fates]
    ended_us = [None if fate is None or fate.ended_ms is None else fate.ended_ms * 1000 for fate in fates]
    claims = [None if fate is None else fate.claim for fate in fates]
    results = [None if fate is None else fate.result for fate in fates]
    arrays = (
        pa.array(outcomes, pa.string()),
        pa.array(ended_us, pa.timestamp("us", tz="UTC")),
        pa.array(claims, pa.int64()),
        pa.array(results, pa.binary()),
    )
    return pa.StructArray.from_arrays(arrays, names=list(COLUMNS))
