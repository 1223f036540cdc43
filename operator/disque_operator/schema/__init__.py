"""The CustomResourceDefinition of `DisqueCluster` and its reference page, generated from the model of the resource.

Fields come from `spec` and `status_fields`, directives and their values from the broker's table, and types of
Kubernetes from its client. `python -m disque_operator.schema > manifests/crd/disqueclusters.yaml` writes the
definition; a test compares the file to the model. The running operator does not import this package.
"""
