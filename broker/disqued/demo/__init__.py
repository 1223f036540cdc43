"""The demonstration behind `make run`: a broker, real jobs, worker processes, and one of them killed on the way.

Every Python source file of a folder, the standard library if nothing else is said, becomes a job that names the file.
Workers take jobs, parse the files and count definitions; one is killed with jobs in its hands, which come back after
their retry time. The total must equal a count without the broker.

`source` counts, `broker` starts a node, `worker` is one process, `crew` leads them, `tally` adds up what they report,
`view` shows it while it goes on and `summary` at the end. Only the client is used to talk to the broker, by address, so
several nodes need no change here. It belongs to no other room: nothing may import it.
"""
