"""A client of the API server: objects as plain JSON, and waiting for conditions by watching objects.

    kube = Kube()
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "e2e-1"}})
    pod = kube.wait("Pod", "e2e-1", lambda pods: next(filter(is_ready, pods), None), "a pod is ready", within_s=30)

Kinds are named as in manifests; `PATHS` has the API path of each. Only the configuration, the
connection and the streams (exec, port-forward) of the client library are used.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import urllib3
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import portforward, stream

Json = dict[str, Any]
T = TypeVar("T")

MANAGER: Final = "disque-e2e"
REQUEST_S: Final = 15.0
RECONNECT_S: Final = 0.5
"""Pause between attempts while the API server is down."""
EXECUTE_S: Final = 120.0

PATHS: Final = {
    "Namespace": ("api/v1", "namespaces"),
    "Node": ("api/v1", "nodes"),
    "PersistentVolume": ("api/v1", "persistentvolumes"),
    "ClusterRole": ("apis/rbac.authorization.k8s.io/v1", "clusterroles"),
    "ClusterRoleBinding": ("apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    "CustomResourceDefinition": ("apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "ConfigMap": ("api/v1", "configmaps"),
    "Event": ("api/v1", "events"),
    "PersistentVolumeClaim": ("api/v1", "persistentvolumeclaims"),
    "Pod": ("api/v1", "pods"),
    "ResourceQuota": ("api/v1", "resourcequotas"),
    "Secret": ("api/v1", "secrets"),
    "Service": ("api/v1", "services"),
    "ServiceAccount": ("api/v1", "serviceaccounts"),
    "ControllerRevision": ("apis/apps/v1", "controllerrevisions"),
    "Deployment": ("apis/apps/v1", "deployments"),
    "StatefulSet": ("apis/apps/v1", "statefulsets"),
    "StorageClass": ("apis/storage.k8s.io/v1", "storageclasses"),
    "CronJob": ("apis/batch/v1", "cronjobs"),
    "Job": ("apis/batch/v1", "jobs"),
    "Lease": ("apis/coordination.k8s.io/v1", "leases"),
    "EndpointSlice": ("apis/discovery.k8s.io/v1", "endpointslices"),
    "NetworkPolicy": ("apis/networking.k8s.io/v1", "networkpolicies"),
    "PodDisruptionBudget": ("apis/policy/v1", "poddisruptionbudgets"),
    "Role": ("apis/rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ("apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "DisqueCluster": ("apis/disque.dev/v1alpha1", "disqueclusters"),
    "DisqueUser": ("apis/disque.dev/v1alpha1", "disqueusers"),
    "DisqueQueue": ("apis/disque.dev/v1alpha1", "disquequeues"),
    "DisqueSchedule": ("apis/disque.dev/v1alpha1", "disqueschedules"),
    "DisqueBackup": ("apis/disque.dev/v1alpha1", "disquebackups"),
}
CLUSTER_WIDE: Final = frozenset(
    (
        *("ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace", "Node", "PersistentVolume"),
        "StorageClass",
    )
)
NOT_FOUND: Final = 404
GONE: Final = 410
TOO_MANY_REQUESTS: Final = 429
SERVER_ERROR: Final = 500


class CommandFailedError(Exception):
    """A command in a pod failed."""


class WaitFailedError(AssertionError):
    """A wait timed out."""


class Kube:
    """A client of the API server in a kubeconfig, by default the one in KUBECONFIG."""

    def __init__(self, kubeconfig: str | None = None) -> None:
        self.kubeconfig = kubeconfig or os.environ.get("KUBECONFIG", "")
        self._api = config.new_client_from_config(config_file=self.kubeconfig or None)
        self._api.configuration.retries = False
        self._api.rest_client.pool_manager.connection_pool_kw["retries"] = False

    # --- objects ------------------------------------------------------------------------------------------------------

    def get(self, kind: str, name: str, namespace: str = "") -> Json:
        """Return an object; ApiException 404 if it does not exist."""
        return self._json("GET", _path(kind, namespace, name))

    def find(self, kind: str, name: str, namespace: str = "") -> Json | None:
        """Return an object, or None if it does not exist."""
        try:
            return self.get(kind, name, namespace)
        except ApiException as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def all(self, kind: str, namespace: str = "", labels: str = "") -> list[Json]:
        """Return the objects of a kind with these labels, in a namespace or in all of them."""
        items: list[Json] = self._listed(kind, namespace, labels)["items"]
        return items

    def create(self, manifest: Json) -> Json:
        """Create an object; ApiException if it is rejected."""
        return self._json("POST", _path(manifest["kind"], _namespace(manifest)), manifest)

    def apply(self, manifest: Json) -> Json:
        """Apply a manifest (server-side apply) and take over conflicting fields."""
        path = _path(manifest["kind"], _namespace(manifest), manifest["metadata"]["name"])
        query = {"fieldManager": MANAGER, "force": "true"}
        return self._json("PATCH", path, manifest, query, "application/apply-patch+yaml")

    def dry_run(self, manifest: Json, method: str = "PATCH") -> Json:
        """Return the object that a request would store, without storing it.

        Raises ApiException if the API server rejects the object, or a field of it as unknown.
        """
        query = {"dryRun": "All", "fieldValidation": "Strict"}
        named = "" if method == "POST" else manifest["metadata"]["name"]
        path = _path(manifest["kind"], _namespace(manifest), named)
        if method != "PATCH":
            return self._json(method, path, manifest, query)
        return self._json(method, path, manifest, query | {"fieldManager": MANAGER}, "application/apply-patch+yaml")

    def patch(self, kind: str, name: str, namespace: str, change: Json, part: str = "") -> Json:
        """Apply a merge patch to an object, or to a subresource of it."""
        path = _path(kind, namespace, name) + (f"/{part}" if part else "")
        return self._json("PATCH", path, change, None, "application/merge-patch+json")

    def delete(self, kind: str, name: str, namespace: str = "", grace_s: int | None = None) -> None:
        """Delete an object, if it exists."""
        options = {"propagationPolicy": "Background"} | ({} if grace_s is None else {"gracePeriodSeconds": grace_s})
        with _ignoring(NOT_FOUND):
            self._json("DELETE", _path(kind, namespace, name), options)

    def evict(self, pod: str, namespace: str) -> bool:
        """Evict a pod, as `kubectl drain` does; False if a disruption budget does not allow it now."""
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}}
        try:
            self._json("POST", _path("Pod", namespace, pod) + "/eviction", eviction)
        except ApiException as error:
            if error.status == TOO_MANY_REQUESTS:
                return False
            if error.status != NOT_FOUND:
                raise
        return True

    # --- pods ---------------------------------------------------------------------------------------------------------

    def logs(self, pod: str, namespace: str, *, container: str = "", previous: bool = False) -> str:
        """Return the log of a pod's container, or of its previous run; each line starts with a timestamp.

        A pod with several containers needs the name of one.
        """
        query = {"timestamps": "true"} | ({"previous": "true"} if previous else {})
        query |= {"container": container} if container else {}
        return self._read("GET", _path("Pod", namespace, pod) + "/log", None, query).decode(errors="replace")

    def execute(self, pod: str, namespace: str, *command: str, container: str = "") -> str:
        """Run a command in a pod and return what it prints; a pod with several containers needs the name of one.

        Raises:
            CommandFailedError: it failed; with what it printed on its standard error.
        """
        run = client.CoreV1Api(self._api).connect_get_namespaced_pod_exec
        where = {"container": container} if container else {}
        # the client would change output that is JSON
        options = {"stdin": False, "stdout": True, "stderr": True, "tty": False, "_preload_content": False, **where}
        running = stream(run, pod, namespace, command=list(command), **options)
        running.run_forever(EXECUTE_S)
        if running.returncode != 0:
            raise CommandFailedError(f"{command[:2]} in {pod}: {running.returncode}\n{running.read_stderr()}")
        return str(running.read_stdout())

    def forward(self, pod: str, namespace: str, port: int) -> Any:
        """Return a socket that is connected to a port of a pod, through the API server."""
        run = client.CoreV1Api(self._api).connect_get_namespaced_pod_portforward
        return portforward(run, pod, namespace, ports=str(port)).socket(port)

    # --- waiting ------------------------------------------------------------------------------------------------------

    def wait(
        self,
        kind: str,
        namespace: str,
        condition: Callable[[list[Json]], T | None],
        what: str,
        *,
        within_s: float,
        name: str = "",
        labels: str = "",
    ) -> T:
        """Watch objects until the condition returns something true for them, and return that.

        The condition is called with all matching objects, first and after each change. The wait survives an outage of
        the API server.
        """
        deadline_s = time.monotonic() + within_s
        while True:
            seen: dict[str, Json] = {}
            with _retrying():
                for objects in self._changes(kind, namespace, name, labels, deadline_s, seen):
                    if found := condition(objects):
                        return found
            if time.monotonic() >= deadline_s:
                shown = json.dumps([_short(item) for item in seen.values()], indent=1)
                raise WaitFailedError(f"timed out after {within_s:.0f} s: {what}; last state:\n{shown}")
            time.sleep(RECONNECT_S)

    def _changes(
        self, kind: str, namespace: str, name: str, labels: str, deadline_s: float, seen: dict[str, Json]
    ) -> Iterator[list[Json]]:
        """Yield all objects after each change, until the deadline. `seen` is updated with them, by UID."""
        listed = self._listed(kind, namespace, labels, name)
        seen.update({item["metadata"]["uid"]: {"kind": kind, **item} for item in listed["items"]})
        yield list(seen.values())
        version = listed["metadata"]["resourceVersion"]
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            return
        query = _query(labels, name) | {
            "watch": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(int(left_s) + 1),
        }
        response = self._request("GET", _path(kind, namespace), None, query, timeout_s=left_s + REQUEST_S)
        try:
            for event in _lines(response):
                if event["type"] == "ERROR":
                    raise _RelistError
                uid = event["object"]["metadata"]["uid"]
                if event["type"] == "DELETED":
                    seen.pop(uid, None)
                else:
                    seen[uid] = event["object"]
                yield list(seen.values())
        finally:
            response.close()

    # --- requests -----------------------------------------------------------------------------------------------------

    def _listed(self, kind: str, namespace: str, labels: str = "", name: str = "") -> Json:
        return self._json("GET", _path(kind, namespace), None, _query(labels, name))

    def _json(
        self, method: str, path: str, body: Json | None = None, query: dict[str, str] | None = None, kind: str = ""
    ) -> Json:
        answer: Json = json.loads(self._read(method, path, body, query, kind))
        return answer

    def _read(
        self, method: str, path: str, body: Json | None, query: dict[str, str] | None = None, kind: str = ""
    ) -> bytes:
        response = self._request(method, path, body, query, kind)
        try:
            data: bytes = response.read()
        finally:
            response.release_conn()
        return data

    def _request(
        self,
        method: str,
        path: str,
        body: Json | None,
        query: dict[str, str] | None = None,
        kind: str = "",
        timeout_s: float = REQUEST_S,
    ) -> urllib3.HTTPResponse:
        headers: dict[str, str] = {}
        self._api.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        headers |= {"Content-Type": kind or "application/json", "Accept": "application/json, */*"}
        response: urllib3.HTTPResponse = self._api.rest_client.pool_manager.request(
            method,
            f"{self._api.configuration.host}/{path}?{urlencode(query or {})}",
            body=None if body is None else json.dumps(body),
            headers=headers,
            timeout=urllib3.Timeout(connect=REQUEST_S, read=timeout_s),
            preload_content=False,
        )
        if response.status >= 300:
            text = response.read().decode(errors="replace")
            error = ApiException(status=response.status, reason=_message(text))
            error.body = text
            raise error
        return response


class _RelistError(Exception):
    """The watch expired; the objects must be listed again."""


def _lines(response: urllib3.HTTPResponse) -> Iterator[Json]:
    rest = b""
    for chunk in response.stream(amt=None):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (json.loads(line) for line in lines)


def _path(kind: str, namespace: str, name: str = "") -> str:
    base, plural = PATHS[kind]
    within = f"namespaces/{namespace}/" if namespace and kind not in CLUSTER_WIDE else ""
    return f"{base}/{within}{plural}" + (f"/{name}" if name else "")


def _namespace(manifest: Json) -> str:
    return str(manifest["metadata"].get("namespace", ""))


def _query(labels: str, name: str) -> dict[str, str]:
    return ({"labelSelector": labels} if labels else {}) | ({"fieldSelector": f"metadata.name={name}"} if name else {})


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text


def _short(item: Json) -> Json:
    """Return the parts of an object that help to explain a failed wait."""
    status = item.get("status", {})
    return {
        "name": item["metadata"]["name"],
        "deleting": "deletionTimestamp" in item["metadata"],
        **{key: value for key, value in status.items() if isinstance(value, str | int)},
        "conditions": [
            " ".join(str(entry.get(key, "")) for key in ("type", "status", "reason", "message"))
            for entry in status.get("conditions", [])
        ],
        "containers": [entry.get("state") for entry in status.get("containerStatuses", [])],
    }


@contextlib.contextmanager
def _retrying() -> Iterator[None]:
    """Suppress errors after which the caller tries again: the API server is down or starting, or a watch expired."""
    try:
        yield
    except (urllib3.exceptions.HTTPError, _RelistError):
        return
    except ApiException as error:
        if error.status not in {GONE, TOO_MANY_REQUESTS} and error.status < SERVER_ERROR:
            raise


@contextlib.contextmanager
def _ignoring(status: int) -> Iterator[None]:
    try:
        yield
    except ApiException as error:
        if error.status != status:
            raise
