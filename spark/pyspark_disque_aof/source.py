"""The data source `format("disque-aof")`, which plans the tasks and reads their files.

**A task reads a whole file.** A reader that starts in the middle cannot distinguish a record from bytes in the body of
a job that look like one; a body may even contain a whole append-only file. So there is one task for each file. With
`rows` = `jobs`, a long file has several tasks. Each scans the whole file, which is cheap, but processes and returns
only its share of the jobs, which is what takes memory and time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from disqued.persistence.parse import Damage, Entry
from pyspark_disque.optionvalues import BadOption
from pyspark_disque_aof import rows
from pyspark_disque_aof.files import AofDamaged, AofFile, damage_error, find, read_items
from pyspark_disque_aof.options import AofOptions, parse
from pyspark_disque_aof.outcomes import Outcomes

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_LOG: Final = logging.getLogger("pyspark_disque_aof")


class AofDataSource(DataSource):
    """Append-only files of Disque nodes. `pyspark_disque_aof.options` lists the options."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "disque-aof"

    def schema(self) -> str:
        """Return the columns, as DDL (`pyspark_disque_aof.rows`)."""
        return rows.SCHEMAS[parse(self.options).rows]

    def reader(self, schema: StructType) -> AofReader:
        """Return the reader for `spark.read`."""
        return AofReader(parse(self.options), schema)


@dataclass(frozen=True)
class Share(InputPartition):
    """What one task reads: the jobs of a file whose IDs hash to `share` of `shares`."""

    address: str
    share: int
    shares: int


class AofReader(DataSourceReader):
    """Reads the files that the options name. Spark pickles it for the tasks, so it holds only values."""

    def __init__(self, options: AofOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._queues = None if options.queues is None else frozenset(options.queues)
        known = rows.columns(options.rows)
        for column in schema.fields:
            if known.get(column.name) != column.dataType.simpleString():
                there = ", ".join(f"{name} {kind}" for name, kind in known.items())
                raise BadOption(
                    f"unknown column {column.name} {column.dataType.simpleString()}; the columns are {there}"
                )

    def partitions(self) -> list[InputPartition]:
        """Plan one task for each file, or several for the jobs of a long file."""
        return [share for file in find(self._options.paths) for share in self._shares(file)]

    def _shares(self, file: AofFile) -> Iterator[Share]:
        folds = self._options.rows == "jobs"
        shares = max(1, -(-file.size // self._options.max_partition_bytes)) if folds else 1
        return (Share(file.address, share, shares) for share in range(shares))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        assert isinstance(partition, Share)
        found = self._jobs(partition) if self._options.rows == "jobs" else self._records(partition)
        return rows.batches(found, to_arrow_schema(self._schema, timezone="UTC"))

    def _entries(self, share: Share, *, log_damage: bool) -> Iterator[Entry]:
        """Yield the valid records; damage fails the query, or is skipped and, if `log_damage`, logged."""
        for item in read_items(share.address):
            if isinstance(item, Entry):
                yield item
            elif self._options.fail_on_damage:
                raise damage_error(share.address, item)
            elif log_damage:
                _LOG.warning("skipped a damaged range: %s", damage_error(share.address, item))

    def _jobs(self, share: Share) -> Iterator[rows.Row]:
        outcomes = Outcomes(share.share, share.shares)
        outcomes.apply_all(self._entries(share, log_damage=share.share == 0))
        left = len(outcomes.by_id)
        for entry in self._entries(share, log_damage=False):
            outcome = outcomes.of(entry)
            if outcome is None:
                continue
            left -= 1
            row = rows.of_job(share.address, entry, outcome, body=self._options.include_body)
            if self._is_wanted(row):
                yield row
        if left:
            raise AofDamaged(
                f"{share.address} changed while it was read: a node rewrote it, and {left} jobs are no longer at their "
                "offsets. Run the query again, or read a copy"
            )

    def _records(self, share: Share) -> Iterator[rows.Row]:
        for item in read_items(share.address):
            if isinstance(item, Damage) and self._options.fail_on_damage:
                raise damage_error(share.address, item)
            row = rows.of_item(share.address, item, body=self._options.include_body)
            if self._is_wanted(row):
                yield row

    def _is_wanted(self, row: dict[str, Any]) -> bool:
        return self._queues is None or row.get("queue") in self._queues
