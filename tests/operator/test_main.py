"""The operator as a process, with a small API server: what it writes, its probe and metrics, its shutdown."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
import pytest
import yaml

from disque_operator import names
from disque_operator.apivalues import Json, condition_of
from disqued.testing.ports import free_port
from support.apiserver import ApiServer, serving

pytestmark = pytest.mark.slow

CLUSTERS: Final = f"/apis/{names.API_VERSION}/namespaces/team/{names.PLURAL}"
LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/team/leases/disque-operator"
STATEFUL_SET: Final = "/apis/apps/v1/namespaces/team/statefulsets/shop"
TIMEOUT_S: Final = 120.0
END_S: Final = 60.0


class Operator:
    """A `disque-operator` process for the namespace `team`, and its API server."""

    def __init__(
        self, server: ApiServer, process: asyncio.subprocess.Process, log: Path, ports: tuple[int, int]
    ) -> None:
        self.server = server
        self.process = process
        self.log = log
        self.liveness = f"http://127.0.0.1:{ports[0]}/healthz"
        self.metrics = f"http://127.0.0.1:{ports[1]}/metrics"

    async def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait until the condition holds."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while not condition():
                    assert self.process.returncode is None, self.log.read_text()
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"not in time: {what}\n{self.log.read_text()}") from None

    async def until_page(self, condition: Callable[[str], object], what: str) -> None:
        """Wait until the condition holds for the metrics page."""
        async with asyncio.timeout(TIMEOUT_S):
            for _ in range(int(TIMEOUT_S / 0.1)):
                if condition((await read(self.metrics))[1]):
                    return
                await asyncio.sleep(0.1)
        raise AssertionError(f"not in time: {what}")

    async def end(self) -> int:
        """Send SIGTERM and return the exit status."""
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(END_S):
            return await self.process.wait()


@asynccontextmanager
async def running(folder: Path, server: ApiServer) -> AsyncIterator[Operator]:
    """Run an operator until the context ends."""
    async with serving(server) as configuration:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(
            yaml.safe_dump(
                {
                    "current-context": "test",
                    "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
                    "clusters": [{"name": "test", "cluster": {"server": configuration.host}}],
                    "users": [{"name": "test", "user": {"token": "t"}}],
                }
            )
        )
        log = folder / "log"
        ports = free_port(), free_port()
        flags = ["--namespaces=team", "--log-format=text", "--resync=10", "--identity=me", "--image=disqued:test"]
        flags += [f"--liveness=http://127.0.0.1:{ports[0]}/healthz", f"--metrics-port={ports[1]}"]
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "disque_operator.main",
                *flags,
                env={**os.environ, "KUBECONFIG": str(kubeconfig)},
                stdout=output,
                stderr=output,
            )
        try:
            yield Operator(server, process, log, ports)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def cluster(**spec: object) -> Json:
    return {"apiVersion": names.API_VERSION, "kind": names.KIND, "spec": spec}


async def read(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


def test_objects_are_created_and_then_nothing_is_written(tmp_path: Path) -> None:
    async def main() -> None:
        server = ApiServer()
        server.put(f"{CLUSTERS}/shop", cluster(replicas=2))
        async with running(tmp_path, server) as operator:
            await operator.until(lambda: STATEFUL_SET in server.objects, "the StatefulSet is created")
            shop = server.objects[f"{CLUSTERS}/shop"]
            owners = server.objects[STATEFUL_SET]["metadata"]["ownerReferences"]
            assert [owner["uid"] for owner in owners] == [shop["metadata"]["uid"]]
            await operator.until(
                lambda: condition_of(server.objects[f"{CLUSTERS}/shop"].get("status", {}), "ReconcileSuccess"),
                "the status is written",
            )
            assert server.objects[f"{CLUSTERS}/shop"]["metadata"].keys() == shop["metadata"].keys(), "no finalizer"
            assert "annotations" not in server.objects[f"{CLUSTERS}/shop"]["metadata"]
            await asyncio.sleep(3)
            written = [request for request in server.writes if "leases" not in request]
            await asyncio.sleep(5)
            assert [request for request in server.writes if "leases" not in request] == written, (
                "the cluster waits for pods"
            )
            status, page = await read(operator.metrics)
            assert status == 200
            shown = [line for line in page.splitlines() if line.startswith("disque_operator_cluster_phase{")]
            assert [line for line in shown if line.endswith(" 1.0")] == [
                'disque_operator_cluster_phase{cluster="shop",namespace="team",phase="Creating"} 1.0'
            ]
            assert "disque_operator_lease_held 1.0" in page
            assert (await read(operator.liveness))[0] == 200
            assert await operator.end() == 0
            assert server.objects[LEASE]["spec"]["holderIdentity"] == "", "the Lease is released"
            assert "Traceback" not in operator.log.read_text()
            assert "not be served" not in operator.log.read_text(), "kopf watches all kinds"

    asyncio.run(main())


def test_new_clusters_and_manual_changes_are_noticed(tmp_path: Path) -> None:
    async def main() -> None:
        server = ApiServer()
        async with running(tmp_path, server) as operator:
            await operator.until(lambda: LEASE in server.objects, "the operator holds the Lease")
            server.put(f"{CLUSTERS}/shop", cluster(replicas=1))
            await operator.until(lambda: STATEFUL_SET in server.objects, "the StatefulSet is created")
            server.put(f"{CLUSTERS}/shop", server.objects[f"{CLUSTERS}/shop"] | {"spec": {"replicas": 3}})
            await operator.until(
                lambda: server.objects[STATEFUL_SET]["spec"]["replicas"] == 3, "a change of the spec is applied"
            )
            shop = server.objects[f"{CLUSTERS}/shop"]
            shop["metadata"]["annotations"] = {names.RESTART_AT: "now"}
            template = server.objects[STATEFUL_SET]["spec"]["template"]
            server.put(f"{CLUSTERS}/shop", shop)
            await operator.until(
                lambda: server.objects[STATEFUL_SET]["spec"]["template"] != template, "an annotation is applied"
            )
            config = "/api/v1/namespaces/team/configmaps/shop-config"
            wanted = server.objects[config]["data"]
            server.put(config, server.objects[config] | {"data": {"disque.conf": "port 1\n"}})
            await operator.until(lambda: server.objects[config]["data"] == wanted, "the ConfigMap is restored")
            server.remove("/api/v1/namespaces/team/services/shop")
            await operator.until(
                lambda: "/api/v1/namespaces/team/services/shop" in server.objects, "the Service is restored"
            )
            server.remove(f"{CLUSTERS}/shop")
            server.remove(STATEFUL_SET)
            await asyncio.sleep(3)
            assert STATEFUL_SET not in server.objects, "a deleted cluster is not created again"
            assert await operator.end() == 0

    asyncio.run(main())


def test_operator_continues_after_an_api_server_outage(tmp_path: Path) -> None:
    async def main() -> None:
        server = ApiServer()
        async with running(tmp_path, server) as operator:
            await operator.until(lambda: LEASE in server.objects, "the operator holds the Lease")
            server.reject = lambda _method, _path: 503
            server.put(f"{CLUSTERS}/shop", cluster(replicas=1))
            await asyncio.sleep(5)
            assert STATEFUL_SET not in server.objects
            assert operator.process.returncode is None
            server.reject = lambda _method, _path: None
            await operator.until(lambda: STATEFUL_SET in server.objects, "the StatefulSet is created")
            assert (await read(operator.liveness))[0] == 200

    asyncio.run(main())


def test_metrics_of_clusters_disappear_when_the_lease_is_lost(tmp_path: Path) -> None:
    async def main() -> None:
        server = ApiServer()
        server.put(f"{CLUSTERS}/shop", cluster(replicas=1))
        async with running(tmp_path, server) as operator:
            await operator.until(lambda: STATEFUL_SET in server.objects, "the StatefulSet is created")
            await operator.until_page(lambda page: 'phase="Creating"} 1.0' in page, "the metrics contain the cluster")
            lease = server.objects[LEASE]
            server.put(LEASE, lease | {"spec": lease["spec"] | {"holderIdentity": "another"}})
            await operator.until_page(lambda page: "disque_operator_lease_held 0.0" in page, "it has lost the Lease")
            states = ("cluster_phase", "cluster_condition", "cluster_members", "paused")
            await operator.until_page(
                lambda page: not any(f"disque_operator_{state}{{" in page for state in states),
                "the metrics do not contain the cluster",
            )

    asyncio.run(main())


@pytest.mark.long
def test_dead_watches_fail_the_probe_and_lists_replace_them(tmp_path: Path) -> None:
    async def main() -> None:
        server = ApiServer()
        async with running(tmp_path, server) as operator:
            await operator.until(lambda: LEASE in server.objects, "the operator holds the Lease")
            server.drops_events = lambda _path: True
            server.put(f"{CLUSTERS}/shop", cluster(replicas=1))
            await operator.until(lambda: STATEFUL_SET in server.objects, "the cluster is found by a list")
            message = "no watch reported DisqueCluster team/shop"
            while message not in operator.log.read_text():
                await read(operator.liveness)
                await asyncio.sleep(1)
            assert (await read(operator.liveness))[0] == 500

    asyncio.run(main())


@pytest.mark.long
def test_dead_watch_of_secrets_alone_fails_the_probe(tmp_path: Path) -> None:
    async def main() -> None:
        server = ApiServer()
        server.put(f"{CLUSTERS}/shop", cluster(replicas=1))
        async with running(tmp_path, server) as operator:
            await operator.until(lambda: STATEFUL_SET in server.objects, "the StatefulSet is created")
            server.drops_events = lambda path: "/secrets/" in path
            auth = "/api/v1/namespaces/team/secrets/shop-auth"
            while "no watch reported Secret team/shop-auth" not in operator.log.read_text():
                server.put(auth, server.objects[auth])  # it has another version in each list
                await read(operator.liveness)
                await asyncio.sleep(1)
            assert (await read(operator.liveness))[0] == 500

    asyncio.run(main())


def test_missing_definition_is_reported_with_advice(tmp_path: Path) -> None:
    async def main() -> None:
        server = ApiServer()
        server.reject = lambda _method, path: 404 if names.PLURAL in path else None
        async with running(tmp_path, server) as operator:
            async with asyncio.timeout(TIMEOUT_S):
                assert await operator.process.wait() == 1
            assert "disqueclusters.disque.dev is not installed: apply manifests/crd" in operator.log.read_text()
            assert "Traceback" not in operator.log.read_text()
            assert "Unclosed" not in operator.log.read_text()

    asyncio.run(main())


def test_operator_exits_when_the_definition_is_deleted(tmp_path: Path) -> None:
    async def main() -> None:
        server = ApiServer()
        async with running(tmp_path, server) as operator:
            await operator.until(lambda: LEASE in server.objects, "the operator holds the Lease")
            server.drops_events = lambda _path: True
            server.reject = lambda _method, path: 404 if names.PLURAL in path else None
            async with asyncio.timeout(TIMEOUT_S):
                assert await operator.process.wait() == 1

    asyncio.run(main())


@pytest.mark.parametrize("status", [401, 403])
def test_missing_permissions_are_reported(tmp_path: Path, status: int) -> None:
    async def main() -> None:
        server = ApiServer()
        server.reject = lambda _method, _path: status
        async with running(tmp_path, server) as operator:
            async with asyncio.timeout(TIMEOUT_S):
                assert await operator.process.wait() == 1
            assert f"/{names.PLURAL} is refused" in operator.log.read_text()

    asyncio.run(main())
