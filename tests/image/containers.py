"""Runs containers of the images with Docker or Podman, without a network; commands run inside them."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

TIMEOUT_S = 60
BROKER = os.environ.get("DISQUED_IMAGE", "disqued:dev")
OPERATOR = os.environ.get("DISQUED_OPERATOR_IMAGE", "disqued-operator:dev")
SPARK = os.environ.get("DISQUED_SPARK_IMAGE", "disqued-spark:dev")
LOCKED_DOWN = (
    "--read-only",
    "--network=none",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--no-healthcheck",  # the tests run it; Podman needs systemd for it
)
CANNOT_START = 126
"""Exit status of Docker and Podman if the program of a container could not be started."""
MORE_LOCKED_DOWN = {"podman": ("--read-only-tmpfs=false",)}


@dataclass(frozen=True)
class Done:
    """The result of a program."""

    status: int
    output: str
    errors: str


@functools.cache
def tool() -> str | None:
    """Return the container tool that works on this machine, None if there is none."""
    for name in ("docker", "podman"):
        if shutil.which(name) and not call(name, "info").status:
            return name
    return None


def call(*words: str) -> Done:
    """Run a program until it ends."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def needed(image: str) -> str:
    """Return the image, or skip the test if it does not exist or cannot run."""
    name = tool()
    if name is None:
        pytest.skip("neither Docker (with its daemon) nor Podman works on this machine")
    if call(name, "image", "inspect", image).status:
        pytest.skip(f"image {image} does not exist: run `make image`, or set DISQUED_IMAGE etc.")
    if forbidden := refusal(name, image):
        pytest.skip(f"{name} is not allowed to run containers on this machine: {forbidden}")
    return image


@functools.cache
def refusal(name: str, image: str) -> str:
    """Return the error if this machine is not allowed to run containers; empty if it is."""
    done = call(name, "run", "--rm", "--network=none", "--no-healthcheck", image, "python3", "-c", "")
    is_forbidden = done.status == CANNOT_START and "Operation not permitted" in done.errors
    return done.errors.strip().splitlines()[-1] if is_forbidden else ""


def described(image: str) -> dict[str, Any]:
    """Return the metadata of an image."""
    (found,) = json.loads(call(str(tool()), "image", "inspect", needed(image)).output)
    return dict(found)


def run(image: str, *command: str) -> Done:
    """Run a program in a new container until it ends."""
    name = str(tool())
    return call(name, "run", "--rm", *LOCKED_DOWN, *MORE_LOCKED_DOWN.get(name, ()), needed(image), *command)


class Container:
    """A running container."""

    def __init__(self, name: str) -> None:
        self.name = name

    def ask(self, *command: str) -> Done:
        """Run a program in the container."""
        return call(str(tool()), "exec", self.name, *command)

    def signal(self, name: str) -> tuple[int, float]:
        """Send a signal to the container's main process; return its exit status, and the seconds until it ended."""
        start_s = time.monotonic()
        assert call(str(tool()), "kill", "--signal", name, self.name).status == 0
        status = int(call(str(tool()), "wait", self.name).output)
        return status, time.monotonic() - start_s

    def wait_for(self, what: str, seen: Callable[[Done], bool], *command: str) -> None:
        """Repeat a command in the container until its result is the expected one."""
        until_s = time.monotonic() + TIMEOUT_S
        while not seen(answer := self.ask(*command)):
            logs = call(str(tool()), "logs", self.name)
            assert time.monotonic() < until_s, f"not {what}: {answer}\n{logs.output}{logs.errors}"

    def wait_until_serving(self) -> None:
        """Wait until the broker replies to PING."""
        self.wait_for("serving", lambda answer: answer.output == "PONG\n", "disque", "ping")


@contextmanager
def started(image: str, *command: str) -> Iterator[Container]:
    """Run a container in the background; it is removed with its volume when the context ends."""
    name = str(tool())
    done = call(name, "run", "--detach", *LOCKED_DOWN, *MORE_LOCKED_DOWN.get(name, ()), needed(image), *command)
    assert done.status == 0, done
    container = Container(done.output.strip())
    try:
        yield container
    finally:
        call(name, "rm", "--force", "--volumes", container.name)
