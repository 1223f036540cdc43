"""The CustomResourceDefinitions and their reference pages, generated from the models of the resources.

Fields come from the models, directives and their values from the broker's table, and types of Kubernetes from its
client. `python -m disque_operator.schema manifests/crd` writes the definitions; a test compares them to the models.
The running operator does not import this package.
"""
