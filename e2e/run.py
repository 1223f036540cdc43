"""`make e2e`: provide a Kubernetes cluster and the images, and run the end-to-end tests.

If KUBECONFIG is set, the tests use that cluster. E2E_IMAGE, E2E_NEXT_IMAGE, E2E_OPERATOR_IMAGE, E2E_SPARK_IMAGE and
E2E_EXAMPLE_IMAGE then name images that the cluster has or can pull. Alternatively, E2E_BUILD is a command that builds
an image and makes it available to the cluster: `$E2E_BUILD TAG $E2E_BUILD_ARGS .`.
Otherwise `kind` creates a cluster, which is deleted at the end unless E2E_KEEP is set.

    make e2e                               run all tests
    make e2e ARGS="-k upgrade -n0"         run some tests; the arguments are passed to pytest
    python e2e/run.py --images             only build the images with E2E_BUILD, ahead of a run; this takes minutes.
                                           Their names are written to build/images.env
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
KIND: Final = "disqued-e2e"
BUILT: Final = ROOT / "build" / "images.env"
"""The names of images built ahead of a run, as shell assignments."""
KUBECONFIG: Final = ROOT / "build" / "e2e" / "kubeconfig"
IMAGES: Final = (
    ("E2E_IMAGE", "localhost/disqued:e2e", "broker"),
    ("E2E_NEXT_IMAGE", "localhost/disqued:e2e-next", "broker"),
    ("E2E_OPERATOR_IMAGE", "localhost/disque-operator:e2e", "operator"),
    ("E2E_SPARK_IMAGE", "localhost/disqued-spark:e2e", "spark"),
    ("E2E_EXAMPLE_IMAGE", "localhost/disqued-example:e2e", "example"),
)
"""For each image: its environment variable, its tag when built here, and its target in the Dockerfile."""
API_MANIFEST: Final = "/etc/kubernetes/manifests/kube-apiserver.yaml"
KIND_HOOKS: Final = {
    "E2E_NODE_STOP": "docker kill $NODE",
    "E2E_NODE_START": "docker start $NODE",
    "E2E_API_STOP": f"docker exec {KIND}-control-plane mv {API_MANIFEST} /kube-apiserver.yaml",
    "E2E_API_START": f"docker exec {KIND}-control-plane mv /kube-apiserver.yaml {API_MANIFEST}",
}
"""How to stop and start nodes and the API server of a `kind` cluster."""
NO_KUBERNETES: Final = """\
no Kubernetes cluster to test against: set KUBECONFIG to a cluster that may be disrupted (nodes are drained, pods are
killed), or install kind and docker to create one"""
NO_IMAGE: Final = """\
KUBECONFIG is set, but no images to test: set E2E_IMAGE, E2E_NEXT_IMAGE, E2E_OPERATOR_IMAGE, E2E_SPARK_IMAGE and
E2E_EXAMPLE_IMAGE to images that the cluster can pull, or E2E_BUILD to a command that builds and loads an image
($E2E_BUILD TAG $E2E_BUILD_ARGS .)"""


def main(arguments: list[str]) -> int:
    """Run the tests and return the exit status."""
    if arguments == ["--images"]:
        return _build_ahead()
    if os.environ.get("KUBECONFIG"):
        if not os.environ.get("E2E_IMAGE") and not os.environ.get("E2E_BUILD"):
            return _refuse(NO_IMAGE)
        return _test(arguments, _images(os.environ.get("E2E_BUILD", "")))
    if not shutil.which("kind") or not shutil.which("docker"):
        return _refuse(NO_KUBERNETES)
    build = f"{sys.executable} {__file__} --into-kind"
    with _kind() as environment:
        return _test(arguments, {**KIND_HOOKS, **environment, "E2E_BUILD": build, **_images(build)})


def _build_ahead() -> int:
    """Build the images and write their names to `BUILT`."""
    build = os.environ.get("E2E_BUILD")
    if not build:
        return _refuse(NO_IMAGE)
    BUILT.parent.mkdir(exist_ok=True)
    BUILT.unlink(missing_ok=True)
    lines = [f"{variable}={tag}\n" for variable, tag in _images(build).items()]
    BUILT.write_text("".join(lines), encoding="utf-8")
    return 0


def _refuse(text: str) -> int:
    sys.stderr.write(text + "\n")
    return 2


def _images(build: str) -> dict[str, str]:
    """Return the variables that name the images. Builds the images unless E2E_IMAGE is set."""
    if os.environ.get("E2E_IMAGE"):
        return {}
    options = os.environ.get("E2E_BUILD_ARGS", "")
    for _, tag, target in IMAGES:
        subprocess.run(f"{build} {tag} {options} --target {target} .", shell=True, check=True, cwd=ROOT)
    return {variable: tag for variable, tag, _ in IMAGES}


def _test(arguments: list[str], environment: dict[str, str]) -> int:
    command = [sys.executable, "-m", "pytest", "-c", "e2e/pytest.ini", "e2e", *arguments]
    return subprocess.run(command, check=False, cwd=ROOT, env={**os.environ, **environment}).returncode


@contextlib.contextmanager
def _kind() -> Iterator[dict[str, str]]:
    """Create a `kind` cluster, or use an existing one; yields KUBECONFIG as a variable."""
    KUBECONFIG.parent.mkdir(parents=True, exist_ok=True)
    known = subprocess.run(["kind", "get", "clusters"], check=True, capture_output=True, text=True).stdout.split()
    where = ["--name", KIND, "--kubeconfig", str(KUBECONFIG)]
    if KIND in known:
        subprocess.run(["kind", "export", "kubeconfig", *where], check=True)
    else:
        config = ["--config", str(ROOT / "e2e" / "kind.yaml"), "--wait", "3m"]
        node = os.environ.get("E2E_KIND_NODE")
        subprocess.run(["kind", "create", "cluster", *where, *config, *(["--image", node] if node else [])], check=True)
    try:
        yield {"KUBECONFIG": str(KUBECONFIG)}
    finally:
        if not os.environ.get("E2E_KEEP"):
            subprocess.run(["kind", "delete", "cluster", *where], check=True)


def into_kind(tag: str, *options: str) -> int:
    """Build an image and load it into the `kind` cluster."""
    subprocess.run(["docker", "build", "--tag", tag, *options], check=True)
    return subprocess.run(["kind", "load", "docker-image", tag, "--name", KIND], check=False).returncode


if __name__ == "__main__":
    sys.exit(into_kind(*sys.argv[2:]) if sys.argv[1:2] == ["--into-kind"] else main(sys.argv[1:]))
