"""The operator: makes each `DisqueCluster` a running cluster of brokers, and keeps it one.

One level-triggered loop for each cluster: `observe` reads Kubernetes and every node into values, `plan` (pure) says
what is to be done next and what the status is, `act` does it. Nothing is remembered between two rounds but what stands
in Kubernetes and in the nodes, so an operator that dies at any point is followed by one that goes on.

Belongs here: what turns a resource into a cluster, and the commands of people who look after it (`kubectl`). Not here:
anything that brokers know by themselves; the operator speaks to them with `disqued.client` as any client does.
"""
