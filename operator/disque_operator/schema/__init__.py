"""The CustomResourceDefinition of `DisqueCluster`, made from tables: fields, rules, status.

`python -m disque_operator.schema > manifests/crd/disqueclusters.yaml` writes it; a test holds the file to it. Defaults
come from the classes in `spec`, directives and what they take from the broker's table, types that are Kubernetes' own
from its client. The operator itself never reads any of it.
"""
