"""The roles of a replica in its group."""

from __future__ import annotations

from typing import Final

FOLLOWER: Final = 0
"""It copies the log of the leader. A learner has this role too."""
PRE_CANDIDATE: Final = 1
"""It asks whether it could win an election, before it raises the term."""
CANDIDATE: Final = 2
LEADER: Final = 3

NAMES: Final = ("follower", "pre-candidate", "candidate", "leader")
