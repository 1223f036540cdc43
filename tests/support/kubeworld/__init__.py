"""A deterministic model of Kubernetes and of brokers in virtual time, for tests of the operator's planner.

`objects` is the API server. `brokers` are the processes and their view of the cluster. `world` has the controllers, the
kubelets and the observed state. `scenario` runs the reconciliation loop in it with faults and checks invariants. Time
advances in steps of a second, and all random choices come from one seed.
"""
