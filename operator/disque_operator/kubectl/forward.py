"""Port forwards: a port of a pod made reachable as a local port, by `kubectl port-forward`."""

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
    """Forward a port of a pod while the context is open; yields the local port, which listens on loopback only.

    Raises:
        RequestRefusedError: Kubernetes does not allow the forward, or the pod is not running.
        UnreachableError: the API server did not answer in time.
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
    """Wait for the line of `kubectl` that names the local port."""
    seen: list[str] = []
    while True:
        try:
            line = lines.get(timeout=START_TIMEOUT_S)
        except queue.Empty:
            raise UnreachableError(f"port forward to {pod} timed out after {START_TIMEOUT_S:.0f} s") from None
        if line is None:
            raise failure(" ".join(seen) or f"port forward to {pod} ended unexpectedly")
        if found := _FORWARDING.match(line):
            return int(found[1])
        seen.append(line.strip())


def _read(process: subprocess.Popen[str], lines: queue.SimpleQueue[str | None]) -> None:
    """Queue the lines up to the one that names the port, then discard the rest so that the pipe never fills."""
    waiting = True
    for line in output_of(process):
        if waiting:
            lines.put(line)
            waiting = not _FORWARDING.match(line)
    lines.put(None)
