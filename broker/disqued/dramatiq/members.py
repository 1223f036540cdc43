"""The nodes of a cluster one by one: for what must be done, or asked, at one of them."""

from __future__ import annotations

from disqued.client import DisqueError, calls
from disqued.client.nodes import NORMAL_PRIORITY, Address
from disqued.client.session import ONE_ATTEMPT, Session
from disqued.client.transport import run_now


class Members:
    """The nodes that a session knows, and a session for each. Used by one thread at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session.sibling()
        self._sessions: dict[tuple[str, Address], Session] = {}
        """For each node and its address, a session that uses only this node."""

    def sessions(self) -> dict[str, Session | None]:
        """Return a session for each node of which no failure is known, by node ID; None if it cannot be reached.

        Raises:
            DisqueError: no node replied.
        """
        found = run_now(self._session.perform(calls.hello()))
        own = self._session.node
        addresses = {
            node.id: Address(node.host, node.port) if node.host and node.port else own
            for node in found.nodes
            if node.priority == NORMAL_PRIORITY and (node.id == found.node_id or (node.host and node.port))
        }
        sessions = {
            node_id: self._at(node_id, address) for node_id, address in addresses.items() if address is not None
        }
        for gone in [key for key in self._sessions if key[0] not in sessions]:
            self._sessions.pop(gone).drop_idle()
        return sessions

    def _at(self, node_id: str, address: Address) -> Session | None:
        known = self._sessions.get((node_id, address))
        if known is not None:
            return known
        session = self._session.only_at(address)
        try:
            found = run_now(session.perform(calls.hello(), ONE_ATTEMPT))
        except DisqueError:
            return None
        if found.node_id != node_id:
            session.drop_idle()
            return None
        self._sessions[node_id, address] = session
        return session

    def close(self) -> None:
        """Close the connections."""
        for session in (self._session, *self._sessions.values()):
            session.drop_idle()
