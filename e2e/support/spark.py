"""Spark jobs, submitted with manifests/spark, but with the image under test and small resources.

spark = Spark(kube, cluster, image)
spark.install()
enqueue = spark.submit("enqueue", {"--sql": "SELECT …"})
enqueue.wait_running(executors=2)
enqueue.wait_done()
"""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any, Final

import yaml

from e2e.support.cluster import Members
from e2e.support.kube import Json, Kube
from e2e.support.settings import ROOT

FOLDER: Final = ROOT / "manifests" / "spark"
START_S: Final = 180
DONE_S: Final = 300
QUICK: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options for short-lived JVMs."""
SMALL: Final = {
    "spark.kubernetes.container.image.pullPolicy": "IfNotPresent",
    "spark.kubernetes.driver.request.cores": "100m",
    "spark.kubernetes.executor.request.cores": "100m",
    "spark.executor.cores": "1",
    "spark.executor.memory": "700m",
    "spark.driver.memory": "700m",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
}
"""Settings for busy nodes, in addition to the small resources in the manifests."""
READ: Final = """
import json, sys
import pyarrow.compute as compute
import pyarrow.dataset as datasets

table = datasets.dataset(sys.argv[1], partitioning="hive", ignore_prefixes=[".", "_"]).to_table()
keys = [json.loads(body)[sys.argv[2]] for body in table["body"].to_pylist()]
numbers = {"rows": table.num_rows, "ids": len(compute.unique(table["id"])), "keys": len(set(keys))}
print(json.dumps(numbers))
"""
"""A program for a pod: counts the rows, IDs and keys in a directory of Parquet files."""


class Spark:
    """Prepares a namespace for Spark jobs, and submits them."""

    def __init__(self, kube: Kube, cluster: Members, image: str) -> None:
        self._kube = kube
        self._cluster = cluster
        self._namespace = cluster.namespace
        self._image = image

    def install(self) -> None:
        """Apply manifests/spark, as `kubectl apply -k manifests/spark` does."""
        words = ["kubectl", "kustomize", str(FOLDER)]
        text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        for manifest in yaml.safe_load_all(text):
            self._apply(manifest)

    def submit(self, name: str, options: dict[str, str | None]) -> SparkJob:
        """Submit the job in the manifest of this name, with these options of the pipeline; None removes an option."""
        for manifest in yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()):
            if manifest["kind"] == "Job":
                self._adapt(manifest["spec"]["template"]["spec"], options)
            if manifest["kind"] == "PersistentVolumeClaim":
                manifest["spec"]["accessModes"] = ["ReadWriteOnce"]  # kind supports no other mode
            self._apply(manifest)
        return SparkJob(self._kube, self._namespace, name)

    def _adapt(self, pod: Json, options: dict[str, str | None]) -> None:
        (container,) = pod["containers"]
        container |= {"image": self._image, "imagePullPolicy": "IfNotPresent"}
        next(entry for entry in container["env"] if entry["name"] == "IMAGE")["value"] = self._image
        words = [_renamed(word, self._cluster) for word in container["args"]]
        file = next(number for number, word in enumerate(words) if word.startswith("local://"))
        settings = [f"--conf={name}={value}" for name, value in SMALL.items()]
        container["args"] = words[:file] + settings + words[file : file + 1] + _with(options, words[file + 1 :])

    def _apply(self, manifest: Json) -> None:
        manifest["metadata"]["namespace"] = self._namespace
        self._kube.apply(manifest)

    def read(self, claim: str, path: str, key: str) -> dict[str, int]:
        """Return the number of rows, job IDs and keys in the Parquet files on a volume."""
        self._kube.create(self._reader(claim, ["python3", "-c", READ, path, key]))
        self._kube.wait("Pod", self._namespace, _ended, "the volume is read", within_s=START_S, name="reader")
        line = self._kube.logs("reader", self._namespace).splitlines()[-1]
        numbers: dict[str, int] = json.loads(line.partition(" ")[2])
        return numbers

    def _reader(self, claim: str, command: list[str]) -> Json:
        template: Json = yaml.safe_load((FOLDER / "executor.yaml").read_text())
        (container,) = template["spec"]["containers"]
        mounts = [{"name": "results", "mountPath": "/results"}]
        container |= {"image": self._image, "imagePullPolicy": "IfNotPresent", "args": command, "volumeMounts": mounts}
        volumes = [{"name": "results", "persistentVolumeClaim": {"claimName": claim}}]
        template["spec"] |= {"restartPolicy": "Never", "volumes": volumes}
        template["metadata"] = {"name": "reader", "namespace": self._namespace}
        return template


class SparkJob:
    """A submitted job: the pod that submits it, the driver, and the executors."""

    def __init__(self, kube: Kube, namespace: str, name: str) -> None:
        self._kube = kube
        self._namespace = namespace
        self._name = name

    @property
    def driver(self) -> Json:
        """The driver's pod; waits until it exists."""
        labels = f"spark-role=driver,spark-app-name={self._name}"
        (pod,) = self._kube.wait(
            "Pod", self._namespace, lambda pods: pods, f"{self._name} has a driver", within_s=START_S, labels=labels
        )
        return pod

    def wait_running(self, executors: int) -> list[str]:
        """Wait until this number of executors run, and return the names of their pods."""

        def running(pods: list[Json]) -> list[str] | None:
            names = [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Running"]
            return names if len(names) >= executors else None

        application = self.driver["metadata"]["labels"]["spark-app-selector"]
        labels = f"spark-role=executor,spark-app-selector={application}"
        what = f"{self._name} runs with {executors} executors"
        return self._kube.wait("Pod", self._namespace, running, what, within_s=START_S, labels=labels)

    def kill_executor(self) -> None:
        """Kill an executor while it works."""
        self._kube.delete("Pod", self.wait_running(1)[0], self._namespace, grace_s=0)

    def is_running(self) -> bool:
        """Return whether the driver still runs."""
        return bool(self.driver["status"]["phase"] == "Running")

    def wait_done(self) -> dict[str, str]:
        """Wait until the job has succeeded, and return the figures in the driver's last summary line, by name."""
        self._kube.wait("Job", self._namespace, _succeeded, f"{self._name} is done", within_s=DONE_S, name=self._name)
        lines = self._kube.logs(self.driver["metadata"]["name"], self._namespace).splitlines()
        assert [line for line in lines if "is forbidden" in line] == [], "the driver lacks permissions"
        summaries = [line.partition(" ")[2] for line in lines if re.match(r"\S+ jobs: ", line)]
        return dict(part.split(": ", 1) for part in summaries[-1].split(", ") if ": " in part) if summaries else {}


def _with(options: dict[str, str | None], words: list[str]) -> list[str]:
    """Replace the options of the same names in the arguments; None removes an option."""
    kept = [word for word in words if word.partition("=")[0] not in options]
    return kept + [f"{name}={value}" for name, value in options.items() if value is not None]


def _renamed(word: str, cluster: Members) -> str:
    """Replace the name of the cluster in an argument; the manifests are for a cluster named `jobs`."""
    return word.replace("jobs-default-user", cluster.client_secret).replace("jobs:7711", f"{cluster.name}:7711")


def _succeeded(jobs: list[Json]) -> Any:
    for job in jobs:
        assert not job["status"].get("failed"), "the job failed; see the logs of its pods in the results"
    return [job for job in jobs if job["status"].get("succeeded")]


def _ended(pods: list[Json]) -> Any:
    failed = [pod for pod in pods if pod["status"]["phase"] == "Failed"]
    assert not failed, "the reader failed; see its log in the results"
    return [pod for pod in pods if pod["status"]["phase"] == "Succeeded"]
