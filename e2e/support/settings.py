"""Settings from environment variables: the Kubernetes cluster, the images, and commands that disrupt the cluster."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
RESULTS: Final = ROOT / "build" / "e2e"
"""Measurements, and diagnostics of failed tests."""

HOOK_S: Final = 300
"""Nodes may become ready a minute later than the API server."""


@dataclass(frozen=True)
class Settings:
    """The environment variables, documented in `e2e/README.md`."""

    image: str
    """E2E_IMAGE: image of the brokers and the load."""
    next_image: str
    """E2E_NEXT_IMAGE: image to upgrade the brokers to; a later version, or the same image by another name."""
    operator_image: str
    """E2E_OPERATOR_IMAGE: image of the operator."""
    spark_image: str
    """E2E_SPARK_IMAGE: image of Spark drivers and executors."""
    example_image: str
    """E2E_EXAMPLE_IMAGE: image of the example application."""
    node_stop: str
    """E2E_NODE_STOP: shell command that stops the node $NODE immediately."""
    node_start: str
    """E2E_NODE_START: shell command that starts the node $NODE."""
    api_stop: str
    """E2E_API_STOP: shell command that stops the API server."""
    api_start: str
    """E2E_API_START: shell command that starts the API server."""
    keep: bool
    """E2E_KEEP: do not uninstall the operator and its resource definition."""

    @classmethod
    def read(cls) -> Settings:
        """Read the settings from the environment."""
        environ = os.environ
        image = environ.get("E2E_IMAGE", "localhost/disqued:e2e")
        return cls(
            image=image,
            next_image=environ.get("E2E_NEXT_IMAGE", f"{image}-next"),
            operator_image=environ.get("E2E_OPERATOR_IMAGE", "localhost/disque-operator:e2e"),
            spark_image=environ.get("E2E_SPARK_IMAGE", "localhost/disqued-spark:e2e"),
            example_image=environ.get("E2E_EXAMPLE_IMAGE", "localhost/disqued-example:e2e"),
            node_stop=environ.get("E2E_NODE_STOP", ""),
            node_start=environ.get("E2E_NODE_START", ""),
            api_stop=environ.get("E2E_API_STOP", ""),
            api_start=environ.get("E2E_API_START", ""),
            keep=bool(environ.get("E2E_KEEP")),
        )


def run_hook(command: str, **variables: str) -> None:
    """Run one of the shell commands of the settings."""
    subprocess.run(
        ["sh", "-ec", command],
        check=True,
        cwd=ROOT,
        env={**os.environ, **variables},
        timeout=HOOK_S,
        stdin=subprocess.DEVNULL,
    )
