"""What every frame of this node announces: its ID, its addresses, its cluster, and whether it is leaving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.bus.extension import cluster_digest, extension
from disqued.bus.writer import FrameWriter
from disqued.core.cluster.peer import BUS_PORT_DISTANCE
from disqued.core.jobs.claims import default_number
from disqued.core.jobs.jobid import JobIds

if TYPE_CHECKING:
    from disqued.membership.kept import Membership


def announce(own: Membership) -> None:
    """Write frames according to the configuration and the cluster view as they are now, and tell the other nodes."""
    state = own.state
    config, view = state.config, state.view
    view.tls_port = config.cluster_announce_tls_port or config.tls_port
    view.port = config.cluster_announce_port or config.port or view.tls_port
    bus_port = config.cluster_announce_bus_port or config.cluster_port
    port = config.port or config.tls_port
    if bus_port == 0 and port > 0:
        bus_port = port + BUS_PORT_DISTANCE
    view.bus_port = bus_port if bus_port < 65536 else 0
    view.host = config.cluster_announce_hostname.encode()
    if config.cluster_zone.encode() != view.zone:
        view.zone = config.cluster_zone.encode()
        view.refresh()
    view.external = config.cluster_announce_external.encode()
    announced_ip = config.cluster_announce_ip.encode()
    if announced_ip != own.announced_ip:
        own.announced_ip = announced_ip
        view.ip = announced_ip
    own.cluster = cluster_digest(config.cluster_name.encode("utf-8", "surrogateescape"))
    state.bus = FrameWriter(
        view.node_id,
        view.port,
        leaving=view.leaving,
        extension=extension(state.features, view.bus_port, own.cluster, state.incarnation, view.tls_port),
        announced_ip=announced_ip,
    )
    own.announcement_changed = True


def change_id(own: Membership, node_id: bytes) -> None:
    """Continue under another node ID."""
    state = own.state
    state.view.node_id = node_id
    state.view.claim_number = default_number(node_id)
    state.view.refresh()
    state.job_ids = JobIds(node_id, state.host.random_bytes)
    announce(own)
