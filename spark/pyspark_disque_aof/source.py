"""The format "disque-aof" as Spark sees it: options and partitions around `files`, `fold` and `rows`.

**A task reads a whole file.** To begin in the middle would be guessing: only the walk from the beginning tells a record
from bytes in the body of a job that look like one, and a body may hold a whole file like this one. So there is a task
for each file, and for `rows` = `jobs` several for a long one: each walks through all of it, which is cheap, and folds
and hands over only its share of the jobs, which is what takes memory and time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from disqued.persistence.reader import Damage, Entry
from pyspark_disque.options import BadOption
from pyspark_disque_aof import rows
from pyspark_disque_aof.files import AofDamaged, AofFile, damaged, find, items
from pyspark_disque_aof.fold import Lives
from pyspark_disque_aof.options import AofOptions, parse

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_LOG: Final = logging.getLogger("pyspark_disque_aof")


class AofDataSource(DataSource):
    """Append only files of Disque nodes. The options are those of `pyspark_disque_aof.options`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "disque-aof"

    def schema(self) -> str:
        """The columns (`pyspark_disque_aof.rows`)."""
        return rows.SCHEMAS[parse(self.options).rows]

    def reader(self, schema: StructType) -> AofReader:
        """What `spark.read` uses."""
        return AofReader(parse(self.options), schema)


@dataclass(frozen=True)
class Share(InputPartition):
    """What a task has: of a file the jobs whose ID falls to `share` of `shares`."""

    address: str
    share: int
    shares: int


class AofReader(DataSourceReader):
    """Reads the files that the options name. It is sent to the tasks, and holds only values."""

    def __init__(self, options: AofOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._queues = None if options.queues is None else frozenset(options.queues)
        known = rows.columns(options.rows)
        for column in schema.fields:
            if known.get(column.name) != column.dataType.simpleString():
                there = ", ".join(f"{name} {kind}" for name, kind in known.items())
                raise BadOption(f"there is no column {column.name} {column.dataType.simpleString()}: choose of {there}")

    def partitions(self) -> list[InputPartition]:
        """A task for each file; for jobs of a long file several."""
        return [share for file in find(self._options.paths) for share in self._shares(file)]

    def _shares(self, file: AofFile) -> Iterator[Share]:
        folds = self._options.rows == "jobs"
        shares = max(1, -(-file.size // self._options.max_partition_bytes)) if folds else 1
        return (Share(file.address, share, shares) for share in range(shares))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        assert isinstance(partition, Share)
        found = self._jobs(partition) if self._options.rows == "jobs" else self._records(partition)
        return rows.batches(found, to_arrow_schema(self._schema, timezone="UTC"))

    def _entries(self, share: Share, *, tell: bool) -> Iterator[Entry]:
        """The sound records; damage ends the query or is told."""
        for item in items(share.address):
            if isinstance(item, Entry):
                yield item
            elif self._options.fail_on_damage:
                raise damaged(share.address, item)
            elif tell:
                _LOG.warning("passed over %s", damaged(share.address, item))

    def _jobs(self, share: Share) -> Iterator[rows.Row]:
        lives = Lives(share.share, share.shares)
        lives.take_all(self._entries(share, tell=share.share == 0))
        left = len(lives.by_id)
        for entry in self._entries(share, tell=False):
            life = lives.of(entry)
            if life is None:
                continue
            left -= 1
            row = rows.of_job(share.address, entry, life, body=self._options.include_body)
            if self._is_wanted(row):
                yield row
        if left:
            raise AofDamaged(
                f"{share.address} changed while it was read: a node wrote it anew, and {left} jobs are not where they "
                "were. Read again, or read a copy"
            )

    def _records(self, share: Share) -> Iterator[rows.Row]:
        for item in items(share.address):
            if isinstance(item, Damage) and self._options.fail_on_damage:
                raise damaged(share.address, item)
            row = rows.of_item(share.address, item, body=self._options.include_body)
            if self._is_wanted(row):
                yield row

    def _is_wanted(self, row: dict[str, Any]) -> bool:
        return self._queues is None or row.get("queue") in self._queues
