"""A port of a pod as a port of this machine, by `kubectl port-forward`."""

from __future__ import annotations

import contextlib
import queue
import re
import subprocess
import threading
from collections.abc import Iterator

from disque_operator.kubectl.api import Kubectl, UnreachableError, failure, output_of

LOOPBACK = "127.0.0.1"
START_TIMEOUT_S = 20.0
_FORWARDING = re.compile(rf"Forwarding from {re.escape(LOOPBACK)}:(\d+) ")


@contextlib.contextmanager
def forwarded(kubectl: Kubectl, pod: str, port: int) -> Iterator[int]:
    """The local port, which only this machine reaches, as long as the context lasts.

    Raises:
        RefusedError: Kubernetes does not allow it, or the pod does not run.
        UnreachableError: there is no connection.
    """
    words = ("port-forward", f"pod/{pod}", f":{port}", "--address", LOOPBACK, "--pod-running-timeout", "2s")
    process = kubectl.start(*words)
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    reader = threading.Thread(target=_read, args=(process, lines), daemon=True)
    reader.start()
    try:
        yield _local_port(lines, pod)
    finally:
        process.terminate()
        process.wait()
        reader.join()
        output_of(process).close()


def _local_port(lines: queue.SimpleQueue[str | None], pod: str) -> int:
    """Wait for the line that names the port."""
    said: list[str] = []
    while True:
        try:
            line = lines.get(timeout=START_TIMEOUT_S)
        except queue.Empty:
            raise UnreachableError(f"no port forward to {pod} within {START_TIMEOUT_S:.0f} s") from None
        if line is None:
            raise failure(" ".join(said) or f"the port forward to {pod} ended")
        if found := _FORWARDING.match(line):
            return int(found[1])
        said.append(line.strip())


def _read(process: subprocess.Popen[str], lines: queue.SimpleQueue[str | None]) -> None:
    """Hand over the lines up to the one that is waited for, and drop those behind it, so that the pipe never fills."""
    waiting = True
    for line in output_of(process):
        if waiting:
            lines.put(line)
            waiting = not _FORWARDING.match(line)
    lines.put(None)
