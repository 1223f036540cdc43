"""A small API server for tests that need no kubelet: objects by path, versions, UIDs, conflicts, over real HTTP.

What the operator relies on is there: server-side apply (without field owners), preconditions, `resourceVersion`, label
selectors, a status that only the status resource changes. What it does with real objects is tested in `e2e`.
"""

from __future__ import annotations

import asyncio
import copy
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from kubernetes.aio.client import Configuration

Json = dict[str, Any]


class ApiServer:
    """`requests` are all that were made, as `PATCH /api/v1/…`; `refuse` may answer one with a status of its own."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.requests: list[str] = []
        self.refuse: Callable[[str, str], int | None] = lambda _method, _path: None
        self.before: Callable[[str, str], None] = lambda _method, _path: None
        """Called before each: what others do meanwhile."""
        self._version = 0

    @property
    def writes(self) -> list[str]:
        """The requests that change something."""
        return [request for request in self.requests if not request.startswith("GET")]

    def put(self, path: str, body: Json) -> Json:
        """An object as somebody else makes or changes it."""
        metadata = body.setdefault("metadata", {})
        before = self.objects.get(path)
        self._version += 1
        metadata["name"] = path.rsplit("/", 1)[1]
        metadata["namespace"] = path.split("/namespaces/")[1].split("/", maxsplit=1)[0]
        metadata["uid"] = before["metadata"]["uid"] if before else str(uuid.uuid4())
        metadata["resourceVersion"] = str(self._version)
        changed = before is None or before.get("spec") != body.get("spec")
        metadata["generation"] = (before["metadata"]["generation"] if before else 0) + changed
        metadata.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        self.objects[path] = body
        return body

    async def _handle(self, request: web.Request) -> web.Response:
        method, path = request.method, request.path
        self.requests.append(f"{method} {path}")
        self.before(method, path)
        status = self.refuse(method, path)
        if status is not None:
            return _refusal(status, f"{path} is refused")
        answer = getattr(self, f"_{method.lower()}")
        found: web.Response = answer(request, await request.json() if request.can_read_body else {})
        return found

    def _get(self, request: web.Request, _body: Json) -> web.Response:
        if request.path in self.objects:
            return web.json_response(self.objects[request.path])
        if self._is_object(request.path):
            return _refusal(404, "not found")
        wanted = [word.split("=") for word in request.query.get("labelSelector", "").split(",") if word]
        items = [
            item
            for path, item in sorted(self.objects.items())
            if path.rsplit("/", 1)[0] == request.path
            and all((item["metadata"].get("labels") or {}).get(key) == value for key, value in wanted)
        ]
        return web.json_response({"items": items})

    @staticmethod
    def _is_object(path: str) -> bool:
        return len(path.rsplit("/namespaces/", maxsplit=1)[-1].split("/")) == 3

    def _post(self, request: web.Request, body: Json) -> web.Response:
        metadata = body["metadata"]
        name = metadata.get("name") or f"{metadata['generateName']}{uuid.uuid4().hex[:5]}"
        path = f"{request.path}/{name}"
        if path in self.objects:
            return _refusal(409, "already exists")
        return web.json_response(self.put(path, body), status=201)

    def _put(self, request: web.Request, body: Json) -> web.Response:
        before = self.objects.get(request.path)
        if before is None or before["metadata"]["resourceVersion"] != body["metadata"].get("resourceVersion"):
            return _refusal(409, "the object has been modified")
        return web.json_response(self.put(request.path, body))

    def _patch(self, request: web.Request, body: Any) -> web.Response:
        if request.path.endswith("/status"):
            return self._patch_status(request.path.removesuffix("/status"), body)
        before = self.objects.get(request.path, {})
        version = body["metadata"].get("resourceVersion")
        if version is not None and version != before.get("metadata", {}).get("resourceVersion"):
            return _refusal(409, "the object has been modified")
        merged = _merged(before, body)
        if before and _merged(before, merged) == before:
            return web.json_response(before)
        return web.json_response(self.put(request.path, merged))

    def _patch_status(self, path: str, operations: list[Json]) -> web.Response:
        test, add = operations
        if path not in self.objects:
            return _refusal(404, "not found")
        body = copy.deepcopy(self.objects[path])
        if body["metadata"]["uid"] != test["value"]:
            return _refusal(422, "the test failed")
        return web.json_response(self.put(path, body | {"status": add["value"]}))

    def _delete(self, request: web.Request, body: Json) -> web.Response:
        found = self.objects.get(request.path)
        if found is None:
            return _refusal(404, "not found")
        if (body.get("preconditions") or {}).get("uid") not in {None, found["metadata"]["uid"]}:
            return _refusal(409, "the UID in the precondition is another one")
        return web.json_response(self.objects.pop(request.path))


def _refusal(status: int, message: str) -> web.Response:
    return web.json_response({"kind": "Status", "message": message}, status=status)


def _merged(before: Any, after: Any) -> Any:
    if not isinstance(before, dict) or not isinstance(after, dict):
        return copy.deepcopy(after)
    return {**before, **{key: _merged(before.get(key), value) for key, value in after.items()}}


@asynccontextmanager
async def serving(server: ApiServer) -> AsyncIterator[Any]:
    """Serve on the loopback address; the context is the client's configuration."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server._handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    configuration = Configuration()
    configuration.host = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield configuration
    finally:
        await runner.cleanup()
        await asyncio.sleep(0)
