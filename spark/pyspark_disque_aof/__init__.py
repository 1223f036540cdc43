"""Append only files of Disque nodes as tables: `spark.read.format("disque-aof").load("/backup/*/disque.aof")`.

A package of its own beside `pyspark_disque` because Spark takes one class `DefaultSource` from each. It reads files and
speaks to no node: the format is known to `disqued.persistence`, which this package brings along. How it is made:
`options` says what may be said, `files` finds and reads, `fold` says what became of each job, `rows` gives columns,
and `source` is what Spark calls.
"""

from pyspark_disque_aof.files import AofDamaged
from pyspark_disque_aof.source import AofDataSource
from pyspark_disque_aof.source import AofDataSource as DefaultSource

__all__ = ["AofDamaged", "AofDataSource", "DefaultSource"]
