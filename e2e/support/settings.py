"""What the environment says: the Kubernetes to use, the images in it, and how to break it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
RESULTS: Final = ROOT / "build" / "e2e"
"""Times, and what is kept of tests that failed."""

HOOK_S: Final = 300
"""Machines may take a minute to be ready again after the API server is."""


@dataclass(frozen=True)
class Settings:
    """The variables of the environment, each with what it is for; `e2e/README.md` lists them for people."""

    image: str
    """E2E_IMAGE: brokers and load."""
    next_image: str
    """E2E_NEXT_IMAGE: another name of the same, or a later one, for upgrades."""
    operator_image: str
    """E2E_OPERATOR_IMAGE."""
    spark_image: str
    """E2E_SPARK_IMAGE: drivers and executors."""
    node_stop: str
    """E2E_NODE_STOP: a shell command that loses the machine $NODE at once."""
    node_start: str
    """E2E_NODE_START: and one that brings it back."""
    api_stop: str
    """E2E_API_STOP: a shell command that takes the API server away."""
    api_start: str
    """E2E_API_START: and one that brings it back."""
    keep: bool
    """E2E_KEEP: leave the operator and its resource definition behind."""

    @classmethod
    def read(cls) -> Settings:
        """The settings of this run."""
        environ = os.environ
        image = environ.get("E2E_IMAGE", "localhost/disqued:e2e")
        return cls(
            image=image,
            next_image=environ.get("E2E_NEXT_IMAGE", f"{image}-next"),
            operator_image=environ.get("E2E_OPERATOR_IMAGE", "localhost/disque-operator:e2e"),
            spark_image=environ.get("E2E_SPARK_IMAGE", "localhost/disqued-spark:e2e"),
            node_stop=environ.get("E2E_NODE_STOP", ""),
            node_start=environ.get("E2E_NODE_START", ""),
            api_stop=environ.get("E2E_API_STOP", ""),
            api_start=environ.get("E2E_API_START", ""),
            keep=bool(environ.get("E2E_KEEP")),
        )


def run_hook(command: str, **variables: str) -> None:
    """Run a command of the environment."""
    subprocess.run(
        ["sh", "-ec", command],
        check=True,
        cwd=ROOT,
        env={**os.environ, **variables},
        timeout=HOOK_S,
        stdin=subprocess.DEVNULL,
    )
