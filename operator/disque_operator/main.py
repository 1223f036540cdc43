"""`disque-operator`: kopf watches objects and answers the liveness probe; `runtime` does everything else.

Handlers only wake the queue, because a round observes everything itself; the indexes are what it reads at rest. kopf
writes nothing, that is, no finalizers, annotations or events, so nothing of it remains on an object when the operator
is removed. Therefore there is no `kopf.timer`, `kopf.daemon` or `kopf.on.delete`: each of them adds a finalizer.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import kopf
from kubernetes.aio.config import ConfigException

from disque_operator import logs, names
from disque_operator.apivalues import Json
from disque_operator.indexes import entry
from disque_operator.kube import KINDS, KubeError, load_configuration
from disque_operator.observe import LISTED
from disque_operator.options import Options, parse
from disque_operator.plan import plan
from disque_operator.queue import Key
from disque_operator.runtime import NotInstalledError, Runtime
from disque_operator.storages import LastHandled, NoProgress
from disque_operator.watches import cluster_of
from disqued import __version__

_NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_LABELLED: Final = {names.CLUSTER_LABEL: kopf.PRESENT}
LAST_HANDLED: Final = LastHandled()
_SHUTDOWN_S: Final = 10.0
"""How long an orderly shutdown may take, in seconds."""
_LOG: Final = logging.getLogger("disque_operator")


@kopf.on.startup(errors=kopf.ErrorsMode.PERMANENT)
async def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **indexes: Any) -> None:
    """Configure kopf and start."""
    settings.posting.enabled = False
    settings.persistence.diffbase_storage = LAST_HANDLED
    settings.persistence.progress_storage = NoProgress()
    settings.scanning.disabled = True  # kinds and namespaces are known, so no rights to list them are needed
    settings.networking.request_timeout = 30
    settings.networking.connect_timeout = 10
    settings.networking.error_backoffs = (0.5, 1, 2, 3, *[5] * 720)  # one hour; kopf gives up after the last
    settings.watching.connect_timeout = 10
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 310
    settings.watching.reconnect_backoff = 1.0
    for kind in LISTED:
        settings.watching.label_selectors[KINDS[kind].api, KINDS[kind].plural] = names.CLUSTER_LABEL
    memo.runtime.start(indexes["clusters"], indexes["children"])


@kopf.on.cleanup()
async def stop(memo: kopf.Memo, **_: Any) -> None:
    """Shut down; exit the process if that takes too long."""
    give_up = threading.Timer(_SHUTDOWN_S, _give_up)
    give_up.daemon = True
    give_up.start()
    await memo.runtime.stop()


@kopf.on.login()
async def login(memo: kopf.Memo, **_: Any) -> kopf.AiohttpSession:
    """Give kopf the same connection settings that the operator uses."""
    kube = memo.runtime.kube
    return kopf.AiohttpSession(server=kube.host, aiohttp_session=kube.session())


@kopf.index(names.API_VERSION, names.PLURAL)
async def clusters(body: kopf.Body, **_: Any) -> dict[Key, Json]:
    """Keep all resources."""
    return {cluster_of(names.KIND, dict(body)): entry(body, names.KIND)}


@kopf.on.create(names.API_VERSION, names.PLURAL)
@kopf.on.update(names.API_VERSION, names.PLURAL)
async def reconcile(body: kopf.Body, memo: kopf.Memo, **_: Any) -> None:
    """Reconcile a resource that is new, or whose spec, labels or annotations have changed."""
    memo.runtime.queue.wake(cluster_of(names.KIND, dict(body)))


@kopf.on.event(names.API_VERSION, names.PLURAL)
async def cluster_reported(body: kopf.Body, event: kopf.RawEvent, memo: kopf.Memo, **_: Any) -> None:
    """Note that the watch works; reconcile a resource that was deleted."""
    is_gone = event["type"] == "DELETED"
    memo.runtime.reported(names.KIND, dict(body), is_gone=is_gone)
    if is_gone:
        LAST_HANDLED.forget(body["metadata"]["uid"])
        memo.runtime.queue.wake(cluster_of(names.KIND, dict(body)))


async def children(body: kopf.Body, param: Any = None, **_: Any) -> dict[Key, Json]:
    """Keep the objects of all clusters."""
    return {cluster_of(param, dict(body)): entry(body, param)}


async def child_changed(body: kopf.Body, event: kopf.RawEvent, memo: kopf.Memo, param: Any = None, **_: Any) -> None:
    """Reconcile the cluster of an object that was created, changed or deleted."""
    memo.runtime.reported(param, dict(body), is_gone=event["type"] == "DELETED")
    memo.runtime.queue.wake(cluster_of(param, dict(body)))


for _kind in LISTED:
    _api, _plural = KINDS[_kind].api, KINDS[_kind].plural
    kopf.index(_api, _plural, labels=_LABELLED, id="children", param=_kind)(children)
    kopf.on.event(_api, _plural, labels=_LABELLED, id=_kind, param=_kind)(child_changed)
for _kind in names.DECLARED:
    _api, _plural = KINDS[_kind].api, KINDS[_kind].plural
    kopf.index(_api, _plural, id="children", param=_kind)(children)
    kopf.on.event(_api, _plural, id=_kind, param=_kind)(child_changed)


@kopf.on.probe(id="problems", errors=kopf.ErrorsMode.PERMANENT)
async def alive(memo: kopf.Memo, **_: Any) -> str:
    """Answer the liveness probe: whether rounds complete and watches report changes."""
    problems = memo.runtime.problems()
    if problems:
        raise kopf.PermanentError("; ".join(problems))
    return "none"


async def serve(options: Options, environ: Mapping[str, str]) -> None:
    """Run until a signal arrives; raise the error if a task fails."""
    failures: list[BaseException] = []
    stop_flag = asyncio.Event()

    def failed(error: BaseException) -> None:
        failures.append(error)
        stop_flag.set()

    runtime = Runtime(
        options,
        await load_configuration(),
        plan,
        operator_namespace=own_namespace(environ) if _NAMESPACE_FILE.exists() else "",
        failed=failed,
    )
    _LOG.info("disque-operator %s", __version__, extra={"identity": options.identity, "namespaces": options.namespaces})
    try:
        await runtime.check()
        await kopf.operator(
            standalone=True,
            clusterwide=not options.namespaces,
            namespaces=options.namespaces,
            liveness_endpoint=options.liveness or None,
            memo=kopf.Memo(runtime=runtime),
            stop_flag=stop_flag,
        )
    finally:
        await runtime.stop()
    if failures:
        raise failures[0]


def _give_up() -> None:
    """Exit the process: kopf waits forever for watches that the API server never answered."""
    _LOG.error("shutdown timed out: exiting without closing watches")
    logging.shutdown()
    os._exit(1)


def own_namespace(environ: Mapping[str, str]) -> str:
    """Return the namespace of the operator; `default` outside a cluster."""
    if "POD_NAMESPACE" in environ:
        return environ["POD_NAMESPACE"]
    return _NAMESPACE_FILE.read_text().strip() if _NAMESPACE_FILE.exists() else "default"


def main() -> None:
    """Run the command `disque-operator`."""
    options = parse(sys.argv[1:], os.environ, secrets.token_hex(4), own_namespace(os.environ))
    logs.configure(options.log_format, options.log_level)
    os.environ.setdefault("POD_ID", options.identity)  # for kopf, whose default needs a user name
    try:
        asyncio.run(serve(options, os.environ))
    except (ConfigException, NotInstalledError, KubeError) as error:
        _LOG.error("%s", error)
        sys.exit(1)


if __name__ == "__main__":
    main()
