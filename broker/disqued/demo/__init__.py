"""The demonstration behind `make run`: a cluster, real jobs, and processes that are killed on the way.

Each Python source file of a folder, by default the standard library, becomes a job that names the file. Producers add
the jobs to one of three nodes, and two nodes keep a copy of each. Workers fetch jobs from another node, parse the files
and count definitions. The demonstration kills the workers' node and starts it again, and kills one worker that holds
jobs. The other nodes and workers take over, and the broker delivers unacknowledged jobs again after their retry time.
At the end every job must be accounted for, and the total must equal a count without the broker.

Further scenes follow on the same cluster: jobs that fail (`failing`), a pipeline of dependent tasks (`pipeline`), and
an ordered queue whose leader is killed (`ordered`).

`source` counts, `cluster` runs the nodes, `producer` and `worker` each run in a process of their own, `workers`
controls those, `outage` kills a node, `report` aggregates their messages, `view` shows progress and `summary` the
result. The nodes are used through the client only, by address. No other package may import this one.
"""
