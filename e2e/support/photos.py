"""The example application in a pod: its web server and two workers, which share a folder and a process namespace.

photos = Photos(kube, cluster, image)
photos.send(20)
photos.wait_done()
"""

from __future__ import annotations

import json
import time
from typing import Any, Final

from e2e.support.cluster import DisqueCluster, is_ready
from e2e.support.kube import Json, Kube

START_S: Final = 90
DONE_S: Final = 300
REMIND_IN_S: Final = 60
WORKERS: Final = ("worker-a", "worker-b")
_NAME: Final = "photos"
_WEB: Final = "web"
_PORT: Final = 8000
_SEND: Final = f"""
import io, json, random, sys, time, urllib.request
from PIL import Image
for number in range(int(sys.argv[1])):
    data = io.BytesIO()
    Image.frombytes("RGB", (40, 30), random.randbytes(3600)).resize((1200, 900)).save(data, "PNG")
    at_s = time.time()
    with urllib.request.urlopen("http://127.0.0.1:{_PORT}/photos", data.getvalue(), timeout=60) as answer:
        print(json.dumps(dict(json.load(answer), at_s=at_s)))
"""
_LOOK: Final = """
import json
from collections import Counter
from photos import store
from photos.tasks import WIDTHS
names = [f"{width}.jpg" for width in WIDTHS]
starts = Counter()
for line in (store.ROOT / "account").read_text().splitlines():
    _, event, task, name, worker = line.split()
    starts[task] += event == "start"
print(json.dumps({
    "published": [path.parent.name for path in store.ROOT.glob("*/album.txt") if path.read_text().split() == names],
    "reminded": {path.parent.name: float(path.read_text()) for path in store.ROOT.glob("*/reminder.txt")},
    "started": len(starts),
    "repeated": sum(count > 1 for count in starts.values()),
}))
"""
_KILL: Final = """
import os, pathlib, signal, sys
for entry in pathlib.Path("/proc").glob("[0-9]*"):
    words = (entry / "cmdline").read_bytes().split(b"\\0")
    if sys.argv[1].encode() + b"@example" in words:
        os.kill(int(entry.name), signal.SIGKILL)
"""


class Photos:
    """The application, which uses the cluster through its client Service."""

    def __init__(self, kube: Kube, cluster: DisqueCluster, image: str) -> None:
        self._kube = kube
        self._namespace = cluster.namespace
        self.sent: list[Json] = []
        kube.create(_pod(cluster, image))
        kube.wait("Pod", self._namespace, _first_ready, "the application is ready", name=_NAME, within_s=START_S)

    def send(self, count: int) -> None:
        """Send pictures to the web server, one after the other."""
        self.sent += [json.loads(line) for line in self._run(_SEND, str(count)).splitlines()]

    def kill_worker(self, name: str) -> None:
        """SIGKILL to all processes of a worker, which Kubernetes starts again."""
        self._run(_KILL, name)

    def look(self) -> Json:
        """What has been done: `published`, `reminded` by photo, and how many tasks `started` and `repeated`."""
        found: Json = json.loads(self._run(_LOOK))
        return found

    def wait_done(self) -> Json:
        """Wait until every picture is published and every reminder is sent; returns what has been done."""
        deadline_s = time.monotonic() + DONE_S
        photos = {sent["photo"] for sent in self.sent}
        while True:
            found = self.look()
            missing = (photos - set(found["published"]), photos - set(found["reminded"]))
            if not any(missing):
                return found
            assert time.monotonic() < deadline_s, f"not published: {missing[0]}; not reminded: {missing[1]}"
            time.sleep(1)

    def _run(self, code: str, *arguments: str) -> str:
        return self._kube.execute(_NAME, self._namespace, "python", "-c", code, *arguments, container=_WEB)


def _first_ready(pods: list[Json]) -> Any:
    return next((pod for pod in pods if is_ready(pod)), None)


def _pod(cluster: DisqueCluster, image: str) -> Json:
    login = f":{cluster.password}@" if cluster.password else ""
    url = f"disque://{login}{cluster.service}:7711"
    environment = {
        "CELERY_BROKER_URL": url,
        "CELERY_RESULT_BACKEND": url,
        "PHOTOS": "/data",
        "PHOTOS_REMIND_IN_S": str(REMIND_IN_S),
        "PORT": str(_PORT),
    }

    def container(name: str, *command: str) -> Json:
        return {
            "name": name,
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "command": list(command),
            "env": [{"name": key, "value": value} for key, value in environment.items()],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }

    celery = ("celery", "-A", "photos.app", "worker", "-Q", "photos,thumbnails", "-c", "2", "-l", "INFO")
    web = container(_WEB, "python", "-m", "photos.web") | {
        "readinessProbe": {"tcpSocket": {"port": _PORT}, "periodSeconds": 1}
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": _NAME, "namespace": cluster.namespace},
        "spec": {
            "automountServiceAccountToken": False,
            "shareProcessNamespace": True,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "volumes": [{"name": "data", "emptyDir": {}}],
            "containers": [web, *(container(name, *celery, "-n", f"{name}@example") for name in WORKERS)],
        },
    }
