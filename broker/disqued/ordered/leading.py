"""What a node does beside applying entries: machines follow the settings, jobs move to other queues, ends are told.

The first two are the duties of the leader of a group, the last one is the duty of every replica.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.ordered.catalog import Catalog
from disqued.ordered.clients import Clients
from disqued.ordered.exchange import Duties, Exchange
from disqued.ordered.fates import OrderedFates
from disqued.ordered.moving import ANSWER_MS, GroupMoves
from disqued.ordered.queuemachine import QueueMachine
from disqued.ordered.replica import Replica
from disqued.ordered.requests import COMMAND, Request
from disqued.ordered.settings import are_equal, machine_settings
from disqued.orderedqueue.add import Add
from disqued.orderedqueue.commands import encode_conf
from disqued.orderedqueue.effects import Ended, Move


class _ConfRequest(Request):
    """New settings for a machine; they are compared again after the answer."""

    def __init__(self, leading: Leading, group: i64, data: bytes, deadline_ms: i64) -> None:
        super().__init__(COMMAND, data, deadline_ms, repeated=True)
        self._leading = leading
        self._group: i64 = group

    def answered(self, status: i64, data: bytes) -> None:
        """Compare."""
        del status, data
        self._leading.configured(self._group)


class Leading(Duties):
    """The duties of one node."""

    def __init__(self, exchange: Exchange, clients: Clients, catalog: Catalog) -> None:
        self.fates = OrderedFates(exchange, catalog)
        self._exchange = exchange
        self._clients = clients
        self._catalog = catalog
        self._moves: dict[int, GroupMoves] = {}
        """By group; all groups that this node leads are here."""
        self._changes: i64 = 0
        """What `SettingsIndex.changes` was when settings were compared last."""
        self._to_compare: dict[int, None] = {}
        """Groups whose machines may have other settings than their names."""

    @property
    def under_way(self) -> int:
        """How many jobs are on their way from the groups that this node leads."""
        return sum(len(moves.moves) for moves in self._moves.values())

    def leads(self, group: i64) -> None:
        """Continue the moves of the leader before."""
        replica = self._exchange.replicas.get(int(group))
        if not isinstance(replica, Replica) or not isinstance(replica.applier, QueueMachine):
            return
        applier = replica.applier
        machine = applier.machine
        moves = self._moves.get(int(group))
        if moves is None or moves.machine is not machine:
            moves = GroupMoves(self._exchange, self._clients, self._catalog, applier.queue, machine)
            self._moves[int(group)] = moves
        for move in machine.moves():
            moves.begin(move, inherited=True)
        self._to_compare[int(group)] = None
        self._compare(int(group))

    def follows(self, group: i64) -> None:
        """Leave the moves to the next leader."""
        self._to_compare.pop(int(group), None)
        moves = self._moves.pop(int(group), None)
        if moves is not None:
            moves.follow()

    def moves_begin(self, group: i64, moves: list[Move]) -> None:
        """Make the moves."""
        known = self._moves.get(int(group))
        if known is not None:
            for move in moves:
                known.begin(move, inherited=False)

    def jobs_ended(self, group: i64, ended: list[Ended]) -> None:
        """Moves of jobs that have ended are over."""
        moves = self._moves.get(int(group))
        if moves is not None and moves.moves:
            for one in ended:
                moves.job_ended(one.index)
        self.fates.jobs_ended(group, ended)

    def moved_in(self, group: i64, index: i64, add: Add) -> None:
        """A move added a job to a queue of this node, whoever leads its group."""
        self.fates.moved_in(group, index, add)

    # --- settings -----------------------------------------------------------------------------------------------------

    def follow_settings(self) -> None:
        """Tell machines the settings of their queues, if they have others."""
        for group in [group for group in self._moves if group not in self._exchange.replicas]:
            self.follows(group)
        changes = self._exchange.state.lifecycle.queues.index.changes
        if changes != self._changes:
            self._changes = changes
            self._to_compare = dict.fromkeys(self._moves)
        for group in list(self._to_compare):
            self._compare(group)

    def _compare(self, group: int) -> None:
        """Compare the settings of one machine with those of its name, and propose them if they differ."""
        moves = self._moves.get(group)
        queue = self._catalog.by_group.get(group)
        self._to_compare.pop(group, None)
        if moves is None or queue is None:
            return
        state = self._exchange.state
        wanted = machine_settings(state.lifecycle.queues.settings_of(queue.name))
        if not are_equal(wanted, moves.machine.settings):
            request = _ConfRequest(self, queue.group, encode_conf(wanted), state.now_ms + ANSWER_MS)
            self._clients.client(queue.group).submit(request)

    def configured(self, group: i64) -> None:
        """Settings were told: they may have changed meanwhile, or not have been taken."""
        if int(group) in self._moves:
            self._to_compare[int(group)] = None
