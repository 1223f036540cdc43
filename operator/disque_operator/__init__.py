"""The operator: makes each `DisqueCluster` a running cluster of brokers, and keeps it running.

Each cluster has a level-triggered loop: `observe` reads Kubernetes and every broker into values, `plan` (pure) decides
what to do next and what the status is, `executor` does it. Rounds share no state beyond what is in Kubernetes and in
the brokers, so another operator can take over at any point.

This package contains what turns a resource into a cluster, and the commands for its administrators (`kubectl`). It does
not duplicate what brokers do themselves; it talks to them through `disqued.client`, as any client does.
"""
