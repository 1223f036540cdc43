"""The API server, as the few requests that the operator makes of it, over the official client's asyncio part.

Objects are plain JSON here, as manifests are: the client's models would only be turned into that and back. Kinds stand
in a table instead of being discovered, so that a request is a request and not three.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from disque_operator import names
from disque_operator.apivalues import Json

REQUEST_S: Final = 10.0
"""An API server that takes longer is taken for one that is away."""
UNREACHABLE: Final = 0
NOT_FOUND: Final = 404
CONFLICT: Final = 409
INVALID: Final = 422

NAMESPACE_ENDS: Final = "NamespaceTerminating"

WRITES: Final = frozenset({"apply", "create", "replace", "delete", "status"})


@dataclass(frozen=True)
class _Kind:
    api: str
    """`v1`, or group and version."""
    plural: str


KINDS: Final = {
    names.KIND: _Kind(names.API_VERSION, names.PLURAL),
    "ConfigMap": _Kind("v1", "configmaps"),
    "Event": _Kind("v1", "events"),
    "Lease": _Kind("coordination.k8s.io/v1", "leases"),
    "NetworkPolicy": _Kind("networking.k8s.io/v1", "networkpolicies"),
    "PersistentVolumeClaim": _Kind("v1", "persistentvolumeclaims"),
    "Pod": _Kind("v1", "pods"),
    "PodDisruptionBudget": _Kind("policy/v1", "poddisruptionbudgets"),
    "Secret": _Kind("v1", "secrets"),
    "Service": _Kind("v1", "services"),
    "ServiceAccount": _Kind("v1", "serviceaccounts"),
    "StatefulSet": _Kind("apps/v1", "statefulsets"),
}


class KubeError(Exception):
    """A request that failed. `status` is the HTTP status, UNREACHABLE when there was no answer.

    `causes` are the words for it that the API server added, as NAMESPACE_ENDS.
    """

    def __init__(self, status: int, message: str, causes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.causes = causes


async def load_configuration() -> Any:
    """Where the API server is and who we are: the service account's inside a pod, KUBECONFIG's elsewhere.

    Raises:
        ConfigException: neither is there.
    """
    configuration = Configuration()
    try:
        load_incluster_config(configuration)
    except ConfigException:
        await load_kube_config(client_configuration=configuration, persist_config=False)
    return configuration


class Kube:
    """The requests. `counted` is told of each: its verb, kind and HTTP status."""

    def __init__(self, configuration: Any, counted: Callable[[str, str, int], None]) -> None:
        self._api = ApiClient(configuration)
        self.host: str = configuration.host.rstrip("/")
        """Where it is."""
        self._counted = counted

    async def close(self) -> None:
        """Close all connections."""
        await self._api.close()

    def session(self) -> aiohttp.ClientSession:
        """Connections of the same kind for kopf: certificates, server name, proxy, and a token that is always fresh."""
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

    async def get(self, kind: str, namespace: str, name: str) -> Json | None:
        """An object, or None when there is none."""
        try:
            return await self._request("get", "GET", kind, _path(kind, namespace, name))
        except KubeError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    async def list(self, kind: str, namespace: str | None, *, labels: str = "", fields: str = "") -> list[Json]:
        """The objects of a kind in a namespace (None for all) as they are now, not as they once were."""
        query = {key: value for key, value in (("labelSelector", labels), ("fieldSelector", fields)) if value}
        found = await self._request("list", "GET", kind, _path(kind, namespace), query)
        return [{"apiVersion": KINDS[kind].api, "kind": kind} | item for item in found.get("items") or []]

    async def create(self, kind: str, namespace: str, body: Json) -> Json:
        """Make an object; CONFLICT when there is one."""
        return await self._request("create", "POST", kind, _path(kind, namespace), body=body)

    async def replace(self, kind: str, namespace: str, body: Json) -> Json:
        """Put an object in the place of the one with its `resourceVersion`; CONFLICT when that one is gone."""
        return await self._request("replace", "PUT", kind, _path(kind, namespace, body["metadata"]["name"]), body=body)

    async def apply(self, manifest: Json) -> Json:
        """Server-side apply: our fields are as the manifest says whoever set them, fields of others stay."""
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
        """Delete an object if it is the one with this UID; one that is gone already is no error."""
        options = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        try:
            await self._request("delete", "DELETE", kind, _path(kind, namespace, name), body=options)
        except KubeError as error:
            if error.status != NOT_FOUND:
                raise

    async def write_status(self, cluster: Json, status: Json) -> None:
        """Replace the status of a cluster, if it is still the same object."""
        metadata = cluster["metadata"]
        await self._request(
            "status",
            "PATCH",
            names.KIND,
            _path(names.KIND, metadata["namespace"], metadata["name"]) + "/status",
            {"fieldManager": names.MANAGER},
            [
                {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]},
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
        content_type: str = "application/json",
    ) -> Json:
        headers = {"Accept": "application/json", "Content-Type": content_type, "User-Agent": names.MANAGER}
        status = UNREACHABLE
        try:
            await self._api.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
            url = f"{self.host}{path}?{urlencode(query)}" if query else self.host + path
            response = await self._api.call_api(method, url, headers, body, _request_timeout=REQUEST_S)
            status = response.status
            data = await response.read()
        except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError, OSError) as error:
            raise KubeError(UNREACHABLE, f"the API server does not answer: {_reason(error)}") from error
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


def _error(status: int, data: bytes) -> KubeError:
    """What a `Status` object says, or whatever stands between us and the API server."""
    try:
        said = json.loads(data)
        causes = (said.get("details") or {}).get("causes") or ()
        return KubeError(status, str(said["message"]), tuple(str(cause.get("reason")) for cause in causes))
    except (ValueError, KeyError, TypeError, AttributeError):
        return KubeError(status, f"the API server answered {status}: {data[:200].decode(errors='replace')}")


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
