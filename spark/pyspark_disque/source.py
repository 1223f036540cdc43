"""The data source `format("disque")`, which gives Spark its readers and writers."""

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
    """Queues of a Disque cluster. `pyspark_disque.options` lists the options."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "disque"

    def schema(self) -> str:
        """Return the columns of the source. Spark asks before it chooses between a batch and a stream."""
        return source_schema(
            metadata=self._is_set("includeMetadata"),
            state="states" in self.options,
            attributes=self._is_set("includeAttributes"),
        )

    def _is_set(self, option: str) -> bool:
        return bool(self.options.get(option, "false").strip().lower() == "true")

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for `spark.read`: a snapshot, or with `consume` a consuming read."""
        return batch_reader(parse(self.options, "read"), schema.fieldNames())

    def streamReader(self, schema: StructType) -> QueueStream:  # noqa: N802 - Spark's name
        """Return the reader for `spark.readStream`."""
        return QueueStream(parse(self.options, "stream"), schema.fieldNames())

    def writer(self, schema: StructType, overwrite: bool) -> BatchSink:
        """Return the writer for `df.write`."""
        return BatchSink.plan(parse(self.options, "write"), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamSink:  # noqa: ARG002, N802 - Spark's name; a stream adds
        """Return the writer for `df.writeStream`."""
        return StreamSink.plan(parse(self.options, "streamWrite"), schema)
