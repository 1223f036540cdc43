"""A deterministic model of Kubernetes and of brokers in virtual time, in which the operator's decisions are tried out.

`objects` is the API server, `brokers` are the processes and what they know of each other, `world` has the controllers,
the kubelets and what the operator sees of it all, `story` lets the plan loop run in it among faults and checks what
must never happen. A second is a step; nothing depends on the machine; chance comes from one seed.
"""
