"""The consumers of this node: one agent per ordered queue, or per client of a SINGLE queue.

The name of a consumer begins with the ID of its node, so every replica knows where it is. The consumer of a client
that is gone parts from its group. That is repeated until it is done: an active consumer that stayed would get all jobs
of the queue. If this node ends before, the others part its consumers (`QueueMachine.watch_nodes`).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.clients.session import Session
from disqued.ordered.agents import Agent
from disqued.ordered.catalog import OrderedQueue
from disqued.ordered.clients import Clients
from disqued.ordered.counters import DELIVERED_LOCALLY
from disqued.ordered.delivered import Delivered
from disqued.ordered.exchange import Exchange, client_name
from disqued.ordered.queuemachine import Agents
from disqued.ordered.requests import COMMAND, DONE, Request
from disqued.orderedqueue.commands import Part

PART_AGAIN_MS: Final = 1000
"""How long to wait before a PART that was refused is sent again."""


class _Parting(Request):
    """The PART of a consumer. It waits for a leader for any time."""

    def __init__(self, consumers: Consumers, group: i64, consumer: bytes) -> None:
        super().__init__(COMMAND, Part(consumer).encode(), 0, repeated=True)
        self._consumers = consumers
        self.group: i64 = group
        self.consumer = consumer

    def answered(self, status: i64, data: bytes) -> None:  # noqa: ARG002 - the result says nothing new
        """Send it again later if it was refused, for example because the disk of the leader is full."""
        if status != DONE:
            self._consumers.part_later(self.group, self.consumer)


class Consumers(Agents):
    """All agents of one node."""

    def __init__(self, exchange: Exchange, clients: Clients) -> None:
        self._exchange = exchange
        self._clients = clients
        self._agents: dict[int, dict[bytes, Agent]] = {}
        """By group and name of the consumer."""
        self._of_sessions: dict[int, list[Agent]] = {}
        """The agents of clients of SINGLE queues, by the number of the session."""
        self._to_part: dict[int, list[bytes]] = {}
        """The consumers whose PART was refused, by group."""
        self._part_ms: i64 = 0
        """When it is sent again."""

    def of(self, queue: OrderedQueue, session: Session) -> Agent:
        """The agent that gets jobs of a queue for a client."""
        node_id = self._exchange.node_id
        name = node_id
        if queue.options.single:
            name = client_name(node_id, self._exchange.state.incarnation, session.number)
        of_group = self._agents.setdefault(int(queue.group), {})
        agent = of_group.get(name)
        if agent is None:
            ahead = queue.options.single and queue.options.prefetch == 1
            agent = Agent(self._exchange, self._clients.client(queue.group), queue.name, name, takes_ahead=ahead)
            of_group[name] = agent
            if queue.options.single:
                session.consumes = True
                self._of_sessions.setdefault(int(session.number), []).append(agent)
        return agent

    def session_closed(self, session: Session) -> None:
        """A client that took jobs of SINGLE queues is gone: its consumers leave, and their jobs return."""
        for agent in self._of_sessions.pop(int(session.number), []):
            self._end(agent)

    def check(self) -> None:
        """Look for jobs that were lost on the way to this node, and for what waits to be asked again."""
        now_ms = self._exchange.state.now_ms
        if self._to_part and self._part_ms <= now_ms:
            refused, self._to_part = self._to_part, {}
            for number, consumers in refused.items():
                for consumer in consumers:
                    self._part(number, consumer)
        for group, agents in self._agents.items():
            follows = group in self._exchange.replicas
            for agent in agents.values():
                agent.ask_again(now_ms)
                agent.let_go(now_ms)
                if not follows:
                    agent.check(now_ms)

    def _end(self, agent: Agent) -> None:
        of_group = self._agents.get(int(agent.group), {})
        of_group.pop(agent.consumer, None)
        agent.leave()
        agent.end()
        if agent.may_have_joined:
            self._part(agent.group, agent.consumer)

    def _part(self, group: i64, consumer: bytes) -> None:
        self._clients.client(group).submit(_Parting(self, group, consumer))

    def part_later(self, group: i64, consumer: bytes) -> None:
        """The PART of a consumer was refused."""
        self._to_part.setdefault(int(group), []).append(consumer)
        self._part_ms = self._exchange.state.now_ms + PART_AGAIN_MS

    def group_gone(self, group: i64) -> None:
        """A queue was dropped."""
        self._to_part.pop(int(group), None)
        for agent in self._agents.pop(int(group), {}).values():
            agent.end()

    # --- what the machines say ----------------------------------------------------------------------------------------

    def assigned(self, group: i64, consumer: bytes, job: Delivered) -> None:
        """A job was assigned to a consumer of this node."""
        agent = self._agents.get(int(group), {}).get(consumer)
        if agent is not None:
            self._exchange.state.counters.add(DELIVERED_LOCALLY)
            agent.assigned(job)

    def delivered(self, group: i64, consumer: bytes, job: Delivered, number: i64) -> None:
        """The leader sent a job that was assigned to a consumer of this node."""
        agent = self._agents.get(int(group), {}).get(consumer)
        if agent is not None:
            agent.delivered(job, number)

    def arrived(self, group: i64, consumer: bytes) -> None:
        """Bodies that were missing are here."""
        agent = self._agents.get(int(group), {}).get(consumer)
        if agent is not None:
            agent.place()

    def rejoin(self, group: i64) -> None:
        """The group has taken this node for gone, or a new leader is not on a node that this one follows."""
        for agent in self._agents.get(int(group), {}).values():
            agent.rejoin()

    def abandoned(self, group: i64) -> None:
        """The bodies of jobs that were assigned to consumers of this node will not come from the replica here."""
        for agent in self._agents.get(int(group), {}).values():
            agent.abandoned()

    def led(self, group: i64, leader: bytes) -> None:
        """Requests that wait for a leader can be sent."""
        self._clients.led(group, leader)

    def forget_credit(self, group: i64) -> None:
        """A new leader does not know what the consumers can take."""
        for agent in self._agents.get(int(group), {}).values():
            agent.forget_credit()
