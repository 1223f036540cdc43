"""The demonstration behind `make run`: a cluster, real jobs, and processes that are killed on the way.

Every Python source file of a folder, the standard library if nothing else is said, becomes a job that names the file.
Producers add the jobs to one of three nodes, each kept by two of them; workers take jobs from another node, parse the
files and count definitions. The workers' node is killed and started again, one worker is killed with jobs in its hands:
the others take over, and what was lost on the way comes back after its retry time. In the end every job is accounted
for, and the total must equal a count without the broker.

`source` counts, `cluster` runs the nodes, `producer` and `worker` are one process each, `crew` leads them, `outage`
kills a node, `tally` adds up what is reported, `view` shows it while it goes on and `summary` at the end. Only the
client is used to talk to the nodes, by address. It belongs to no other room: nothing may import it.
"""
