"""Containers of the images, by Docker or Podman: started without a network, asked from inside."""

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
    "--no-healthcheck",  # tests run it themselves; Podman wants systemd for it
)
CAN_NOT_BEGIN = 126
"""The status of Docker and Podman when the first program of a container could not be started."""
MORE_LOCKED_DOWN = {"podman": ("--read-only-tmpfs=false",)}


@dataclass(frozen=True)
class Done:
    """A program that ended."""

    status: int
    output: str
    errors: str


@functools.cache
def tool() -> str | None:
    """The program that runs containers here."""
    for name in ("docker", "podman"):
        if shutil.which(name) and not call(name, "info").status:
            return name
    return None


def call(*words: str) -> Done:
    """Run a program to its end."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def needed(image: str) -> str:
    """An image that is there; the test is skipped if it is not."""
    name = tool()
    if name is None:
        pytest.skip("neither Docker (with its daemon) nor Podman works here")
    if call(name, "image", "inspect", image).status:
        pytest.skip(f"there is no image {image}: make image, or name another by DISQUED_IMAGE and so on")
    if forbidden := refusal(name, image):
        pytest.skip(f"this machine lets {name} run no containers: {forbidden}")
    return image


@functools.cache
def refusal(name: str, image: str) -> str:
    """What the machine forbids when a container of the image is to begin; empty when it may."""
    done = call(name, "run", "--rm", "--network=none", "--no-healthcheck", image, "python3", "-c", "")
    is_forbidden = done.status == CAN_NOT_BEGIN and "Operation not permitted" in done.errors
    return done.errors.strip().splitlines()[-1] if is_forbidden else ""


def described(image: str) -> dict[str, Any]:
    """What an image says of itself."""
    (found,) = json.loads(call(str(tool()), "image", "inspect", needed(image)).output)
    return dict(found)


def run(image: str, *command: str) -> Done:
    """Run a program in a container of its own to its end."""
    name = str(tool())
    return call(name, "run", "--rm", *LOCKED_DOWN, *MORE_LOCKED_DOWN.get(name, ()), needed(image), *command)


class Container:
    """A container that runs."""

    def __init__(self, name: str) -> None:
        self.name = name

    def ask(self, *command: str) -> Done:
        """Run a program in it."""
        return call(str(tool()), "exec", self.name, *command)

    def signal(self, name: str) -> tuple[int, float]:
        """Send its first process a signal; the status with which it ends, and after how many seconds."""
        start_s = time.monotonic()
        assert call(str(tool()), "kill", "--signal", name, self.name).status == 0
        status = int(call(str(tool()), "wait", self.name).output)
        return status, time.monotonic() - start_s

    def wait_for(self, what: str, seen: Callable[[Done], bool], *command: str) -> None:
        """Ask until the answer is the one that is waited for."""
        until_s = time.monotonic() + TIMEOUT_S
        while not seen(answer := self.ask(*command)):
            logs = call(str(tool()), "logs", self.name)
            assert time.monotonic() < until_s, f"not {what}: {answer}\n{logs.output}{logs.errors}"

    def wait_until_it_serves(self) -> None:
        """Wait for the first reply."""
        self.wait_for("serving", lambda answer: answer.output == "PONG\n", "disque", "ping")


@contextmanager
def started(image: str, *command: str) -> Iterator[Container]:
    """A container that runs in the background, gone with its volume at the end."""
    name = str(tool())
    done = call(name, "run", "--detach", *LOCKED_DOWN, *MORE_LOCKED_DOWN.get(name, ()), needed(image), *command)
    assert done.status == 0, done
    container = Container(done.output.strip())
    try:
        yield container
    finally:
        call(name, "rm", "--force", "--volumes", container.name)
