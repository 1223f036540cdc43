"""A pod in the model, as its kubelet knows it."""

from __future__ import annotations

from dataclasses import dataclass

from disque_operator.busmode import PLAIN, BusMode


@dataclass
class PodState:
    """A pod, as its kubelet knows it."""

    name: str
    ordinal: int
    uid: str
    revision: str
    image: str
    created_s: float
    disk_key: str
    """The UID of its claim, or of the pod if it has none."""
    ip: str
    phase: str = "Pending"
    node: str = ""
    trouble: str = ""
    restarts: int = 0
    ready: bool = False
    ready_s: float = 0.0
    ends_s: float | None = None
    drain: bool = False
    start_s: float = 0.0
    tls: bool = False
    """Whether it has a port for clients with TLS."""
    bus: BusMode = PLAIN
    """How it protects the bus."""
    external: frozenset[str] = frozenset()
    """Its ports for clients outside of Kubernetes."""
