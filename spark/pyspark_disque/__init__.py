"""Disque queues as a source and a sink of Spark: `spark.read.format("disque")`, and the other three.

Spark finds this package by itself: it looks for a class `DefaultSource` in installed top-level packages that begin with
`pyspark_`. How it is made: `options` and `schema` say what may be said and which columns there are, `brokers` reaches
the nodes; `sink` writes; `stream` and `batch` read. Spark pickles all of it and sends it to other machines, so what is
sent holds values and no connections. The connector is a client of the brokers as any other.
"""

from pyspark_disque.options import BadOption
from pyspark_disque.source import DisqueDataSource
from pyspark_disque.source import DisqueDataSource as DefaultSource

__all__ = ["BadOption", "DefaultSource", "DisqueDataSource"]
