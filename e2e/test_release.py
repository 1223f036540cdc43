"""From the last release to this one and back, under load: charts, resource definitions, images and files."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from disque_operator.names import TEMPLATE_DIGEST
from e2e.support import lastrelease
from e2e.support.brokers import poll
from e2e.support.cluster import DisqueCluster
from e2e.support.helm import OPERATOR, Release, operator_values
from e2e.support.kube import Json, Kube
from e2e.support.load import Load
from e2e.support.settings import Settings
from e2e.support.times import Times
from release.version import current

UPGRADE_S = 300

pytestmark = pytest.mark.skipif(
    not (shutil.which("helm") and shutil.which("git")), reason="helm or git is not installed"
)


class ClusterOfBoth(DisqueCluster):
    """A cluster whose password is read where both releases have it."""

    @property
    def client_secret(self) -> str:
        """Name of the Secret of the brokers; the last release has none for clients."""
        return f"{self.name}-auth"


@pytest.mark.alone
@pytest.mark.usefixtures("no_operator")
@pytest.mark.timeout(2400)  # it may build the images of the last release
def test_cluster_is_upgraded_from_the_last_release_and_back_without_losing_a_job(
    kube: Kube, namespaces: Callable[[], str], settings: Settings, times: Times
) -> None:
    last = lastrelease.load()
    system, home = namespaces(), namespaces()
    cluster = ClusterOfBoth(kube, home, "shop", last.image)
    with Release(system, "system") as operator:
        operator.install(last.operator_chart, operator_values(last.operator_image), "--take-ownership", "--wait")
        cluster.create(replicas=3)
        cluster.wait_running(3)
        ids = cluster.ids()
        assert versions(cluster) == {last.version}
        with Load(kube, cluster, settings.image) as load:
            uids = [cluster.uid(ordinal) for ordinal in range(3)]
            # the definitions that the last release lacks exist already, for the other tests
            operator.install(OPERATOR, operator_values(settings.operator_image), "--take-ownership", "--wait")
            begin_s = roll(cluster, settings.image)
            assert versions(cluster) == {current()}
            times.since("upgrade_from_the_last_release_s", begin_s)
            assert not {cluster.uid(ordinal) for ordinal in range(3)} & set(uids)

            roll(cluster, last.image)
            operator.rollback()
            poll(lambda: pods_are_of_the_last_release(cluster), "its operator has replaced the pods", UPGRADE_S)
            cluster.wait_running(3)
            assert versions(cluster) == {last.version}
            account = load.settle()
        assert cluster.ids() == ids, "each member kept its volume, and is the same node"
        account.check(at_least=500)


def roll(cluster: DisqueCluster, image: str) -> float:
    """Set the image, and wait until all pods have it and the cluster is running; return when that began."""

    def have_it(pods: list[Json]) -> bool:
        return len(pods) == 3 and all(pod["spec"]["containers"][0]["image"] == image for pod in pods)

    begin_s = cluster.patch(image=image)
    cluster.wait_pods(have_it, f"all pods have {image}", UPGRADE_S)
    cluster.wait_running(3)
    return begin_s


def pods_are_of_the_last_release(cluster: DisqueCluster) -> bool:
    """Return whether the operator of the last release applied its template, without digests, and all pods have it."""
    stateful_set = cluster.kube.get("StatefulSet", cluster.name, cluster.namespace)
    status, metadata = stateful_set["status"], stateful_set["metadata"]
    revisions = {pod["metadata"]["labels"].get("controller-revision-hash") for pod in cluster.pods()}
    is_applied = (
        TEMPLATE_DIGEST not in metadata["annotations"] and status["observedGeneration"] == metadata["generation"]
    )
    return is_applied and revisions == {status["updateRevision"]}


def versions(cluster: DisqueCluster) -> set[str]:
    """Return the versions that the brokers report."""
    with cluster.brokers() as brokers:
        return {str(broker.info("server")["disqued_version"]) for broker in brokers}
