"""Append-only files of Disque nodes as tables: `spark.read.format("disque-aof").load("/backup/*/disque.aof")`.

This package is separate from `pyspark_disque` because Spark loads one class `DefaultSource` per package. It reads files
with the parser of `disqued.persistence`, and never connects to a node. `options` defines the options, `files` finds and
reads the files, `outcomes` determines what became of each job, `rows` builds the columns, and Spark calls `source`.
"""

from pyspark_disque_aof.files import AofDamaged
from pyspark_disque_aof.source import AofDataSource
from pyspark_disque_aof.source import AofDataSource as DefaultSource

__all__ = ["AofDamaged", "AofDataSource", "DefaultSource"]
