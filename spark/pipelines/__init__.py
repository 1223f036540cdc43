"""Ready-made Spark jobs: fill a queue (`enqueue`), move a queue to Parquet (`drain`), and `report` on jobs.

Each is a command (`disque-enqueue`), a module (`python -m pipelines.enqueue`) and a file for `spark-submit`. They share
`command`: options, the session and exit codes. For the report, `jobtable` provides the jobs as one table, `aggregates`
computes the numbers in Spark, and `charts` and `page` draw them on the driver.
"""
