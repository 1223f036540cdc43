"""The requests of this node to all groups."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.ordered.exchange import Exchange
from disqued.ordered.requests import GroupClient


class Clients:
    """The group clients of one node."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._by_group: dict[int, GroupClient] = {}

    def client(self, group: i64) -> GroupClient:
        """The requests of this node to a group."""
        client = self._by_group.get(int(group))
        if client is None:
            client = GroupClient(self._exchange, group)
            self._by_group[int(group)] = client
        return client

    def led(self, group: i64, leader: bytes) -> None:
        """The replica of this node knows who leads a group now; empty if nobody does, which clients find themselves."""
        client = self._by_group.get(int(group))
        if client is not None and leader:
            client.learn(leader)

    def end(self, group: i64) -> None:
        """The group is gone."""
        client = self._by_group.pop(int(group), None)
        if client is not None:
            client.end()

    def groups(self) -> list[int]:
        """The groups with requests, now or before."""
        return list(self._by_group)
