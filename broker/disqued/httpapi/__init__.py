"""The HTTP API (`http-api`): JSON requests on the HTTP port, executed by the commands of the node.

`table` lists the operations. Everything follows from it: which request is which command, the checks of a request, the
OpenAPI document (`/v1/openapi.json`), the page for readers (`/v1/docs`) and docs/http-api.md. `serving` runs a request
as a client of the node, as the console does: with the same users, rules, limits and audit log.
"""
