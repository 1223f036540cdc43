"""The log on disk of all Raft groups of a node: one append and one sync per turn for all of them (`log`).

It stores entries, hard states and snapshots; finds them again after a crash, a loss of power or damage; and gives back
the space of what is needed no more. It knows nothing of what entries mean.
"""

from disqued.raftlog.log import RaftLog
from disqued.raftlog.owner import LogOwner, RecoveredGroup
from disqued.raftlog.tuning import LogTuning

__all__ = ["LogOwner", "LogTuning", "RaftLog", "RecoveredGroup"]
