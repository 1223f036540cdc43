"""Spark jobs that run as they are: fill a queue (`enqueue`), empty one into Parquet (`drain`), `report` on jobs.

Each is a command (`disque-enqueue`), a module (`python -m pipelines.enqueue`) and a file for `spark-submit`. `command`
is what they share: options, a session, how they end. The report is made of `jobtable` (jobs as one table, wherever they
come from), `figures` (what is counted, in Spark), `charts` and `page` (what is drawn of it, on the driver).
"""
