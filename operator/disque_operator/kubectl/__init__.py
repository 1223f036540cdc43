"""`kubectl disque`: what people do with a `DisqueCluster`, at a shell.

It does with `kubectl` what it does: contexts, credential plugins and proxies work as they do there, and nothing but the
package is needed. Nodes are reached through port forwards of the API server, since people are outside of the cluster.

Belongs here: showing, and changing what people may change by hand as well (the spec, the annotations in `names`). Not
here: anything that the operator decides, and nothing imports the operator's loop or its libraries.
"""
