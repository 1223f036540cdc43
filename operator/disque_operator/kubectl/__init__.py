"""`kubectl disque`: a kubectl plugin to inspect and change a `DisqueCluster` from a shell.

Every request runs `kubectl`, so contexts, credential plugins and proxies work as usual and no client library is needed.
The plugin runs outside the cluster and reaches Disque nodes through port forwards of the API server.

Belongs here: showing state, and changing what users may also change by hand (the spec, the annotations in `names`). Not
here: anything that the operator decides. Nothing here imports the operator's loop or its libraries.
"""
