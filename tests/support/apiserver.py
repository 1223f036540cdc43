"""A small API server over HTTP, for tests that need no kubelet.

It has what the operator uses: versions, UIDs, conflicts, server-side apply (without field owners), preconditions, label
selectors, the status subresource, discovery and watches. `e2e` tests with a real API server.
"""

from __future__ import annotations

import asyncio
import copy
import json
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import web
from kubernetes.aio.client import Configuration

from disque_operator.kube import KINDS

Json = dict[str, Any]


class ApiServer:
    """An API server that records `requests`. `reject` can answer a request with an HTTP status."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.requests: list[str] = []
        self.reject: Callable[[str, str], int | None] = lambda _method, _path: None
        self.hangs: Callable[[str, str], bool] = lambda _method, _path: False
        """Whether a request gets no response."""
        self.before: Callable[[str, str], None] = lambda _method, _path: None
        """Called before each request, to simulate changes by others."""
        self.terminating = False
        """Whether namespaces are being deleted, so that no objects can be created."""
        self.drops_events: Callable[[str], bool] = lambda _path: False
        """Of which objects watches report nothing, although they stay open."""
        self.added: dict[str, Json] = {}
        """Discovery of resources that not every Kubernetes has, by path, such as `/apis/monitoring.coreos.com/v1`."""
        self._watches: list[tuple[str, str, str, asyncio.Queue[Json]]] = []
        self._version = 0

    @property
    def writes(self) -> list[str]:
        """Return the requests that change something."""
        return [request for request in self.requests if not request.startswith("GET")]

    def put(self, path: str, body: Json) -> Json:
        """Create or change an object on behalf of somebody else."""
        metadata = body.setdefault("metadata", {})
        before = self.objects.get(path)
        self._version += 1
        metadata["name"] = path.rsplit("/", 1)[1]
        if "/namespaces/" in path:
            metadata["namespace"] = path.split("/namespaces/")[1].split("/", maxsplit=1)[0]
        metadata["uid"] = before["metadata"]["uid"] if before else str(uuid.uuid4())
        metadata["resourceVersion"] = str(self._version)
        changed = before is None or before.get("spec") != body.get("spec")
        metadata["generation"] = (before["metadata"]["generation"] if before else 0) + changed
        metadata.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        self.objects[path] = body
        self._notify(path, "MODIFIED" if before else "ADDED", body)
        return body

    def remove(self, path: str) -> Json:
        """Delete an object."""
        body = self.objects.pop(path)
        self._notify(path, "DELETED", body)
        return body

    def _notify(self, path: str, what: str, body: Json) -> None:
        for collection, labels, fields, events in self._watches:
            matches = _is_in(path, collection) and _has(body, labels) and _matches(body, fields)
            if matches and not self.drops_events(path):
                events.put_nowait({"type": what, "object": copy.deepcopy(body)})

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        method, path = request.method, request.path
        self.requests.append(f"{method} {path}")
        self.before(method, path)
        if self.hangs(method, path):
            await asyncio.Event().wait()
        status = self.reject(method, path)
        if status is not None:
            return _error(status, f"{path} is refused")
        if self.terminating and method in {"POST", "PATCH"} and path.removesuffix("/status") not in self.objects:
            return _error(403, f"{path} is forbidden: the namespace is being terminated", "NamespaceTerminating")
        if request.query.get("watch"):
            return await self._watch(request)
        answer = getattr(self, f"_{method.lower()}")
        found: web.Response = answer(request, await request.json() if request.can_read_body else {})
        return found

    def _get(self, request: web.Request, _body: Json) -> web.Response:
        path = request.path
        known = _DISCOVERY | self.added
        if path in known:
            return web.json_response(known[path])
        if path.startswith("/apis/") and path.count("/") == _OF_A_GROUP:
            return _error(404, "not found")
        if path in self.objects:
            return web.json_response(self.objects[path])
        if len(path.split("/namespaces/")[-1].split("/")) == 3 and "/namespaces/" in path:
            return _error(404, "not found")
        labels = request.query.get("labelSelector", "")
        fields = request.query.get("fieldSelector", "")
        items = [
            item
            for at, item in sorted(self.objects.items())
            if _is_in(at, path) and _has(item, labels) and _matches(item, fields)
        ]
        return web.json_response({"items": items, "metadata": {"resourceVersion": str(self._version)}})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        """Report changes from now on, after the present objects if no version is given. Watches start in time."""
        events: asyncio.Queue[Json] = asyncio.Queue()
        labels, fields = request.query.get("labelSelector", ""), request.query.get("fieldSelector", "")
        entry = (request.path, labels, fields, events)
        self._watches.append(entry)
        if "resourceVersion" not in request.query:
            for at, item in self.objects.items():
                if _is_in(at, request.path) and _has(item, labels) and _matches(item, fields):
                    events.put_nowait({"type": "ADDED", "object": copy.deepcopy(item)})
        stream = web.StreamResponse()
        try:
            await stream.prepare(request)
            while True:
                await stream.write(json.dumps(await events.get()).encode() + b"\n")
        except ConnectionError:
            return stream
        finally:
            self._watches.remove(entry)

    def _post(self, request: web.Request, body: Json) -> web.Response:
        metadata = body["metadata"]
        name = metadata.get("name") or f"{metadata['generateName']}{uuid.uuid4().hex[:5]}"
        path = f"{request.path}/{name}"
        if path in self.objects:
            return _error(409, "already exists")
        return web.json_response(self.put(path, body), status=201)

    def _put(self, request: web.Request, body: Json) -> web.Response:
        before = self.objects.get(request.path)
        if before is None or before["metadata"]["resourceVersion"] != body["metadata"].get("resourceVersion"):
            return _error(409, "the object has been modified")
        return web.json_response(self.put(request.path, body))

    def _patch(self, request: web.Request, body: Any) -> web.Response:
        if request.path.endswith("/status"):
            return self._patch_status(request.path.removesuffix("/status"), body)
        before = self.objects.get(request.path, {})
        version = body["metadata"].get("resourceVersion")
        if version is not None and version != before.get("metadata", {}).get("resourceVersion"):
            return _error(409, "the object has been modified")
        merged = _merged(before, body)
        if before and _merged(before, merged) == before:
            return web.json_response(before)
        return web.json_response(self.put(request.path, merged))

    def _patch_status(self, path: str, operations: list[Json]) -> web.Response:
        version, add = operations
        if path not in self.objects:
            return _error(404, "not found")
        body = copy.deepcopy(self.objects[path])
        if body["metadata"]["resourceVersion"] != version["value"]:
            return _error(409, "the object has been modified")
        return web.json_response(self.put(path, body | {"status": add["value"]}))

    def _delete(self, request: web.Request, body: Json) -> web.Response:
        found = self.objects.get(request.path)
        if found is None:
            return _error(404, "not found")
        if (body.get("preconditions") or {}).get("uid") not in {None, found["metadata"]["uid"]}:
            return _error(409, "the UID in the precondition is another one")
        return web.json_response(self.remove(request.path))


def _is_in(path: str, collection: str) -> bool:
    """Whether an object is in a list: that of its namespace, or that of all."""
    of_namespace = path.rsplit("/", 1)[0]
    root, _, rest = of_namespace.partition("/namespaces/")
    return collection in {of_namespace, f"{root}/{rest.rsplit('/', 1)[-1]}"}


def _has(body: Json, selector: str) -> bool:
    labels = body["metadata"].get("labels") or {}
    wanted = [word.partition("=") for word in selector.split(",") if word]
    return all(labels.get(key) == value if equals else key in labels for key, equals, value in wanted)


def _matches(body: Json, selector: str) -> bool:
    wanted = [word.split("=") for word in selector.split(",") if word]
    return all(_field(body, name) == value for name, value in wanted)


def _field(body: Json, name: str) -> Any:
    value: Any = body
    for part in name.split("."):
        value = (value or {}).get(part)
    return value


_VERBS: Final = ["list", "watch", "patch"]
"""kopf serves no resource without these."""


def _discovery() -> dict[str, Json]:
    """What an API server says of the kinds it has."""
    found: dict[str, Json] = {"/api": {"versions": ["v1"]}, "/apis": {"groups": []}}
    everywhere = {entry.api for kind, entry in KINDS.items() if kind != "PodMonitor"}
    apis = sorted(everywhere | {"apiextensions.k8s.io/v1"})
    for api in apis:
        resources = [
            {"name": entry.plural, "kind": kind, "singularName": "", "namespaced": True, "verbs": _VERBS}
            for kind, entry in KINDS.items()
            if entry.api == api
        ]
        group, _, version = api.rpartition("/")
        found[f"/apis/{api}" if group else f"/api/{api}"] = {"resources": [*resources, *_BACKBONE.get(api, ())]}
        if group:
            versions = {"versions": [{"version": version}], "preferredVersion": {"version": version}}
            found["/apis"]["groups"].append({"name": group, **versions})
    return found


_OF_A_GROUP: Final = 3
"""Slashes in the path of an API group with its version."""
_BACKBONE: Final = {
    "v1": ({"name": "namespaces", "kind": "Namespace", "singularName": "", "namespaced": False, "verbs": ["list"]},),
    "apiextensions.k8s.io/v1": (
        {
            "name": "customresourcedefinitions",
            "kind": "CustomResourceDefinition",
            "singularName": "",
            "namespaced": False,
            "verbs": ["list"],
        },
    ),
}
_DISCOVERY: Final = _discovery()


def _error(status: int, message: str, *causes: str) -> web.Response:
    details = {"causes": [{"reason": cause} for cause in causes]}
    return web.json_response({"kind": "Status", "message": message, "details": details}, status=status)


def _merged(before: Any, after: Any) -> Any:
    if not isinstance(before, dict) or not isinstance(after, dict):
        return copy.deepcopy(after)
    return {**before, **{key: _merged(before.get(key), value) for key, value in after.items()}}


@asynccontextmanager
async def serving(server: ApiServer) -> AsyncIterator[Any]:
    """Serve on the loopback address; the context is the client's configuration."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server._handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
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
