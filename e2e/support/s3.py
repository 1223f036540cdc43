"""An S3 server in a pod: nanio, in pure Python, in a ConfigMap that the pod imports from.

store = S3(kube, namespace, image)
store.url, store.secret    # for spec.backup.store
"""

from __future__ import annotations

import base64
import importlib.util
import io
import zipfile
from pathlib import Path
from typing import Any, Final

from e2e.support.kube import Json, Kube

PACKAGES: Final = (
    *("nanio", "starlette", "uvicorn", "anyio", "h11", "click", "aiofiles", "defusedxml", "idna"),
    "typing_extensions",
)
"""What the server needs when no compiled package is there."""
START_S: Final = 60
PORT: Final = 9000
BUCKET: Final = "jobs"
KEY: Final = "made-for-the-tests"
_NAME: Final = "s3"
_ARCHIVE: Final = "packages.zip"
_SERVE: Final = f"""\
import os, runpy, sys
os.makedirs("/data/{BUCKET}", exist_ok=True)
sys.argv[1:] = ["serve", "--host", "0.0.0.0", "--port", "{PORT}", "--data-dir", "/data"]
runpy.run_module("nanio", run_name="__main__")
"""


class S3:
    """The server, with one bucket. It checks signatures."""

    url: Final = f"s3://{BUCKET}/backups"
    secret: Final = "s3-credentials"

    def __init__(self, kube: Kube, namespace: str, image: str) -> None:
        archive = base64.b64encode(_archive()).decode()
        metadata = {"name": _NAME, "namespace": namespace}
        kube.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": {_ARCHIVE: archive}})
        kube.create(_pod(namespace, image))
        found = kube.wait("Pod", namespace, _ready, "the S3 server accepts connections", name=_NAME, within_s=START_S)
        self.entries: Final = {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": KEY,
            "AWS_ENDPOINT_URL": f"http://{found['status']['podIP']}:{PORT}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
        }
        secret = {"name": self.secret, "namespace": namespace}
        kube.create({"apiVersion": "v1", "kind": "Secret", "metadata": secret, "stringData": self.entries})

    @property
    def store(self) -> Json:
        """The field `store` of the resources."""
        return {"url": self.url, "secretName": self.secret}


def _archive() -> bytes:
    """Return the packages as an archive that Python imports from; a ConfigMap has room for 1 MiB."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in PACKAGES:
            found = importlib.util.find_spec(name)
            assert found is not None, f"{name} is not installed"
            assert found.origin is not None
            path = Path(found.origin)
            root = path.parent if path.name == "__init__.py" else path
            for file in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
                archive.write(file, file.relative_to(root.parent))
    return buffer.getvalue()


def _ready(pods: list[Json]) -> Any:
    def is_ready(pod: Json) -> bool:
        conditions = pod["status"].get("conditions") or ()
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    return next((pod for pod in pods if is_ready(pod)), None)


def _pod(namespace: str, image: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": _NAME, "namespace": namespace},
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "volumes": [
                {"name": "packages", "configMap": {"name": _NAME}},
                {"name": "data", "emptyDir": {}},
            ],
            "containers": [
                {
                    "name": _NAME,
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["python", "-c", _SERVE],
                    "env": [
                        {"name": "PYTHONPATH", "value": f"/packages/{_ARCHIVE}"},
                        {"name": "NANIO_ACCESS_KEY", "value": KEY},
                        {"name": "NANIO_SECRET_KEY", "value": KEY},
                    ],
                    "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
                    "volumeMounts": [
                        {"name": "packages", "mountPath": "/packages", "readOnly": True},
                        {"name": "data", "mountPath": "/data"},
                    ],
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                }
            ],
        },
    }
