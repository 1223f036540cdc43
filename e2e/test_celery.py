"""An application on Celery, unchanged but for its URL, while brokers are upgraded and killed and a worker is killed."""

from __future__ import annotations

import pytest

from e2e.support.cluster import DisqueCluster
from e2e.support.kube import Json, Kube
from e2e.support.photos import REMIND_IN_S, WORKERS, Photos
from e2e.support.settings import Settings
from e2e.support.times import Times

PICTURES = 10
CLOCK_S = 1.0
"""Clocks of Kubernetes' nodes may differ by so much."""


def image_of(pod: Json) -> str:
    return str(pod["spec"]["containers"][0]["image"])


@pytest.mark.long
def test_every_task_of_an_application_is_done_during_an_upgrade(
    kube: Kube, cluster: DisqueCluster, settings: Settings, times: Times
) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    photos = Photos(kube, cluster, settings.example_image)
    photos.send(PICTURES)
    cluster.patch(image=settings.next_image)
    photos.send(PICTURES)
    photos.kill_worker(WORKERS[1])
    photos.send(PICTURES)
    cluster.wait_pods(lambda pods: {image_of(pod) for pod in pods} == {settings.next_image}, "all are new", 300)
    cluster.wait_running(3)
    uid = cluster.uid(1)
    kube.delete("Pod", cluster.pod(1), cluster.namespace, grace_s=0)
    photos.send(PICTURES)
    cluster.wait_replaced(1, uid)
    found = photos.wait_done()
    for sent in photos.sent:
        assert found["reminded"][sent["photo"]] >= sent["at_s"] + REMIND_IN_S - CLOCK_S, "no reminder is early"
    times.note("celery_tasks", found["started"])
    times.note("celery_tasks_repeated", found["repeated"])
