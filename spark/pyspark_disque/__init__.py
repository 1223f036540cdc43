"""Disque queues as a source and a sink of Spark: `format("disque")` for batch and streaming reads and writes.

Spark discovers this package automatically: it looks for a class `DefaultSource` in installed top-level packages whose
names begin with `pyspark_`. `options` and `schema` define the options and columns, `brokers` connects to the nodes,
`sink` writes, and `stream` and `batch` read. `jobids` computes IDs of jobs, and `results` adds columns with their
results. Spark pickles these objects and sends them to executors, so they hold values and no connections. The connector
is an ordinary client of the brokers.
"""

from pyspark_disque.jobids import job_id
from pyspark_disque.optionvalues import BadOption
from pyspark_disque.results import with_results
from pyspark_disque.source import DisqueDataSource
from pyspark_disque.source import DisqueDataSource as DefaultSource

__all__ = ["BadOption", "DefaultSource", "DisqueDataSource", "job_id", "with_results"]
