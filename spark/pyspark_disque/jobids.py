"""Job IDs that Spark computes from columns, so that a row and the rows that refer to it agree about its ID.

An ID is `D-`, 8 hexadecimal digits, `-`, 24 characters of the base64 alphabet, `-`, and 4 hexadecimal digits: the time
to live in minutes, odd for jobs that are delivered at least once, even for the others. The broker takes an ID of the
client if its last part fits the options of the job (`ADDJOB … ID`).
"""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from pyspark_disque.optionvalues import BadOption, seconds

_CHARACTERS: Final = 24
_MAX_MINUTES: Final = 65535


def job_id(*columns: Column | str, ttl: str | int = "1d", at_most_once: bool = False) -> Column:
    """Return a column with a job ID for each row: the same values have the same ID, in every DataFrame.

    Use it as the column `job_id` of a write, and in the column `after` of jobs that wait for it. The values count as
    text, in their order; their types and the names of the columns do not matter. IDs are known in the whole cluster,
    so name the kind of job in it: `job_id(lit("extract"), "day")`.

    Args:
        columns: Columns, or their names, that identify the job.
        ttl: The `ttl` of the job, as for the option; the broker refuses an ID with another one.
        at_most_once: Whether the job has `retry` 0.

    Raises:
        BadOption: there are no columns, or `ttl` is not a time.
    """
    if not columns:
        raise BadOption("job_id needs at least one column that identifies the job")
    try:
        ttl_s = seconds(1)(str(ttl))
    except BadOption as error:
        raise BadOption(f"the ttl of job_id {error}, not {ttl!r}") from None
    minutes = min(ttl_s // 60, _MAX_MINUTES)
    suffix = f"-{minutes & ~1 if at_most_once else minutes | 1:04x}"
    values = [F.col(column) if isinstance(column, str) else column for column in columns]
    digest = F.base64(F.unhex(F.sha2(reduce(F.concat, map(_delimited, values)), 256)))
    return F.concat(F.lit("D-00000000-"), F.substring(digest, 1, _CHARACTERS), F.lit(suffix))


def _delimited(value: Column) -> Column:
    """Return a value as text behind its length, so that `ab`, `c` is not `a`, `bc`; null is no text."""
    text = value.cast("string")
    return F.coalesce(F.concat(F.length(text).cast("string"), F.lit(":"), text), F.lit("-"))
