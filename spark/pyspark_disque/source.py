"""The format "disque" as Spark sees it: which reader and which writer there is for what was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from pyspark_disque.batch import batch_reader
from pyspark_disque.options import parse
from pyspark_disque.schema import source_schema
from pyspark_disque.sink import BatchSink, StreamSink
from pyspark_disque.stream import QueueStream

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader
    from pyspark.sql.types import StructType


class DisqueDataSource(DataSource):
    """Queues of a Disque cluster. The options are those of `pyspark_disque.options`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "disque"

    def schema(self) -> str:
        """The columns of a source; Spark asks before it says whether it reads a batch or a stream."""
        return source_schema(
            metadata=self.options.get("includeMetadata", "false").strip().lower() == "true",
            state="states" in self.options,
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        """What `spark.read` uses: a snapshot, or with `consume` a drain."""
        return batch_reader(parse(self.options, "read"), schema.fieldNames())

    def streamReader(self, schema: StructType) -> QueueStream:  # noqa: N802 - Spark's name
        """What `spark.readStream` uses."""
        return QueueStream(parse(self.options, "stream"), schema.fieldNames())

    def writer(self, schema: StructType, overwrite: bool) -> BatchSink:
        """What `df.write` uses."""
        return BatchSink.plan(parse(self.options, "write"), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamSink:  # noqa: ARG002, N802 - Spark's name; a stream adds
        """What `df.writeStream` uses."""
        return StreamSink.plan(parse(self.options, "streamWrite"), schema)
