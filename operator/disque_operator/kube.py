"""Requests to the API server, through the asyncio part of the official client.

Objects are plain JSON, like manifests; the models of the client would only be converted to JSON and back. Kinds are in
a table, so no request is spent on discovery.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from disque_operator import names
from disque_operator.apivalues import Json

REQUEST_S: Final = 10.0
"""Timeout of a request, in seconds."""
_WATCH_S: Final = 300
_INACTIVE_S: Final = 90.0
"""How long a watch may be silent: the API server sends a bookmark every minute."""
UNREACHABLE: Final = 0
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
CONFLICT: Final = 409
EXPIRED: Final = 410
INVALID: Final = 422
TOO_MANY_REQUESTS: Final = 429
"""Also the reply to an eviction that a PodDisruptionBudget refuses."""

NAMESPACE_TERMINATING: Final = "NamespaceTerminating"

_JSON: Final = "application/json"
_ONLY_METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

WRITES: Final = frozenset({"apply", "create", "replace", "delete", "evict", "status"})


@dataclass(frozen=True)
class _Kind:
    api: str
    """`v1`, or the group and the version."""
    plural: str


KINDS: Final = {
    names.KIND: _Kind(names.API_VERSION, names.PLURAL),
    names.USER_KIND: _Kind(names.API_VERSION, names.USER_PLURAL),
    names.QUEUE_KIND: _Kind(names.API_VERSION, names.QUEUE_PLURAL),
    names.SCHEDULE_KIND: _Kind(names.API_VERSION, names.SCHEDULE_PLURAL),
    names.BACKUP_KIND: _Kind(names.API_VERSION, names.BACKUP_PLURAL),
    "Certificate": _Kind("cert-manager.io/v1", "certificates"),
    "ConfigMap": _Kind("v1", "configmaps"),
    "CronJob": _Kind("batch/v1", "cronjobs"),
    "Event": _Kind("v1", "events"),
    "Job": _Kind("batch/v1", "jobs"),
    "Lease": _Kind("coordination.k8s.io/v1", "leases"),
    "Node": _Kind("v1", "nodes"),
    "NetworkPolicy": _Kind("networking.k8s.io/v1", "networkpolicies"),
    "PersistentVolumeClaim": _Kind("v1", "persistentvolumeclaims"),
    "Pod": _Kind("v1", "pods"),
    "PodDisruptionBudget": _Kind("policy/v1", "poddisruptionbudgets"),
    "PodMonitor": _Kind("monitoring.coreos.com/v1", "podmonitors"),
    "Secret": _Kind("v1", "secrets"),
    "Service": _Kind("v1", "services"),
    "ServiceAccount": _Kind("v1", "serviceaccounts"),
    "StatefulSet": _Kind("apps/v1", "statefulsets"),
    "StorageClass": _Kind("storage.k8s.io/v1", "storageclasses"),
}


class KubeError(Exception):
    """A request failed. `status` is the HTTP status, UNREACHABLE if there was no response.

    `causes` are the causes that the API server reported, for example NAMESPACE_TERMINATING.
    """

    def __init__(self, status: int, message: str, causes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.causes = causes


async def load_configuration() -> Any:
    """Load address and credentials of the API server: from the service account in a pod, or from KUBECONFIG.

    Raises:
        ConfigException: Neither exists.
    """
    configuration = Configuration()
    try:
        load_incluster_config(configuration)
    except ConfigException:
        await load_kube_config(client_configuration=configuration, persist_config=False)
    return configuration


class Kube:
    """A client of the API server. `counted` is called with verb, kind and HTTP status of each request."""

    def __init__(self, configuration: Any, counted: Callable[[str, str, int], None]) -> None:
        self._api = ApiClient(configuration)
        self.host: str = configuration.host.rstrip("/")
        """The base URL of the API server."""
        self._counted = counted
        self._watches: aiohttp.ClientSession | None = None
        """Connections of watches, which would exhaust the pool of the others."""

    async def close(self) -> None:
        """Close all connections."""
        await self._api.close()
        if self._watches is not None:
            await self._watches.close()

    def session(self) -> aiohttp.ClientSession:
        """Return a session for kopf with the same certificates, server name, proxy, and an up-to-date token."""
        rest = self._api.rest_client

        async def identify(
            request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
        ) -> aiohttp.ClientResponse:
            headers: dict[str, str] = {}
            await self._api.update_params_for_auth(headers, [], ["BearerToken"], "", request.method, None)
            request.headers.update(headers)
            request.server_hostname = self._api.configuration.tls_server_name or None
            return await handler(request)

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=rest.ssl_context),
            headers={"User-Agent": names.MANAGER},
            middlewares=(identify,),
            proxy=rest.proxy,
            trust_env=True,
        )

    async def get(self, kind: str, namespace: str | None, name: str) -> Json | None:
        """Return an object; None if it does not exist. `namespace` is None for kinds without namespaces."""
        try:
            return await self._request("get", "GET", kind, _path(kind, namespace, name))
        except KubeError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    async def serves(self, api: str, plural: str) -> bool:
        """Return whether the API server has a resource, such as `podmonitors` of `monitoring.coreos.com/v1`."""
        try:
            found = await self._request("discover", "GET", plural, f"/apis/{api}")
        except KubeError as error:
            if error.status != NOT_FOUND:
                raise
            return False
        return any(resource["name"] == plural for resource in found.get("resources") or ())

    async def list(
        self,
        kind: str,
        namespace: str | None,
        *,
        labels: str = "",
        fields: str = "",
        only_metadata: bool = False,
    ) -> list[Json]:
        """Return the present objects of a kind in a namespace (None for all namespaces), not from a cache."""
        query = {key: value for key, value in (("labelSelector", labels), ("fieldSelector", fields)) if value}
        accept = _ONLY_METADATA if only_metadata else _JSON
        found = await self._request("list", "GET", kind, _path(kind, namespace), query, accept=accept)
        return [{"apiVersion": KINDS[kind].api, "kind": kind} | item for item in found.get("items") or []]

    async def watch(self, kind: str, namespace: str, name: str, since: str) -> AsyncGenerator[Json, None]:
        """Report the changes of an object after the version `since`, or from its present state on if that is empty.

        Events contain only metadata. Bookmarks have the present version and no change. It ends after some minutes.

        Raises:
            KubeError: The watch broke; with EXPIRED if `since` is too old.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "fieldSelector": f"metadata.name={name}",
            "timeoutSeconds": str(_WATCH_S),
        } | ({"resourceVersion": since} if since else {})
        self._watches = self._watches or self.session()
        status = UNREACHABLE
        try:
            async with self._watches.get(
                f"{self.host}{_path(kind, namespace)}?{urlencode(query)}",
                headers={"Accept": _ONLY_METADATA.replace("List", "")},
                timeout=aiohttp.ClientTimeout(sock_connect=REQUEST_S, sock_read=_INACTIVE_S),
            ) as response:
                status = response.status
                if status >= 300:
                    raise _error(status, await response.read())
                async for line in _lines(response.content):
                    event: Json = json.loads(line)
                    if event["type"] == "ERROR":
                        raise KubeError(event["object"].get("code", UNREACHABLE), str(event["object"].get("message")))
                    yield event
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise KubeError(UNREACHABLE, f"no response from the API server: {_reason(error)}") from error
        finally:
            self._counted("watch", kind, status)

    async def create(self, kind: str, namespace: str, body: Json) -> Json:
        """Create an object; fails with CONFLICT if it exists."""
        return await self._request("create", "POST", kind, _path(kind, namespace), body=body)

    async def replace(self, kind: str, namespace: str, body: Json) -> Json:
        """Replace the object with this `resourceVersion`; fails with CONFLICT if it has changed."""
        return await self._request("replace", "PUT", kind, _path(kind, namespace, body["metadata"]["name"]), body=body)

    async def apply(self, manifest: Json) -> Json:
        """Apply a manifest server-side: sets the fields in the manifest, whoever owns them, and keeps the others."""
        kind, metadata = manifest["kind"], manifest["metadata"]
        return await self._request(
            "apply",
            "PATCH",
            kind,
            _path(kind, metadata["namespace"], metadata["name"]),
            {"fieldManager": names.MANAGER, "force": "true"},
            manifest,
            "application/apply-patch+yaml",
        )

    async def delete(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Delete the object with this UID. It is no error if it does not exist."""
        options = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        try:
            await self._request("delete", "DELETE", kind, _path(kind, namespace, name), body=options)
        except KubeError as error:
            if error.status != NOT_FOUND:
                raise

    async def evict(self, namespace: str, name: str, uid: str) -> None:
        """Evict the pod with this UID. It is no error if it does not exist; fails with TOO_MANY_REQUESTS if refused."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        try:
            await self._request("evict", "POST", "Pod", _path("Pod", namespace, name) + "/eviction", body=body)
        except KubeError as error:
            if error.status != NOT_FOUND:
                raise

    async def write_status(self, resource: Json, status: Json) -> Json:
        """Replace the status of a resource; fails with CONFLICT if the resource has changed since it was observed."""
        kind, metadata = resource["kind"], resource["metadata"]
        return await self._request(
            "status",
            "PATCH",
            kind,
            _path(kind, metadata["namespace"], metadata["name"]) + "/status",
            {"fieldManager": names.MANAGER},
            [
                {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
                {"op": "add", "path": "/status", "value": status},
            ],
            "application/json-patch+json",
        )

    async def _request(
        self,
        verb: str,
        method: str,
        kind: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = _JSON,
        accept: str = _JSON,
    ) -> Json:
        headers = {"Accept": accept, "Content-Type": content_type, "User-Agent": names.MANAGER}
        status = UNREACHABLE
        try:
            await self._api.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
            url = f"{self.host}{path}?{urlencode(query)}" if query else self.host + path
            response = await self._api.call_api(method, url, headers, body, _request_timeout=REQUEST_S)
            status = response.status
            data = await response.read()
        except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError, OSError) as error:
            raise KubeError(UNREACHABLE, f"no response from the API server: {_reason(error)}") from error
        finally:
            self._counted(verb, kind, status)
        if status >= 300:
            raise _error(status, data)
        answer: Json = json.loads(data)
        return answer


def _path(kind: str, namespace: str | None, name: str | None = None) -> str:
    entry = KINDS[kind]
    root = f"/apis/{entry.api}" if "/" in entry.api else f"/api/{entry.api}"
    within = f"/namespaces/{quote(namespace)}" if namespace is not None else ""
    return f"{root}{within}/{entry.plural}" + (f"/{quote(name)}" if name is not None else "")


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Return complete lines of any length."""
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line


def _error(status: int, data: bytes) -> KubeError:
    """Return the error of a `Status` object, or of something else such as a proxy."""
    try:
        body = json.loads(data)
        causes = (body.get("details") or {}).get("causes") or ()
        return KubeError(status, str(body["message"]), tuple(str(cause.get("reason")) for cause in causes))
    except (ValueError, KeyError, TypeError, AttributeError):
        return KubeError(
            status, f"unexpected response {status} from the API server: {data[:200].decode(errors='replace')}"
        )


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
