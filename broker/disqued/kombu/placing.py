"""Adding a job where its copies can be: a node that is cut off from the others is left for another one.

A node in the smaller part of a partition, or one whose neighbours have just died, answers NOREPL. Another node may have
room for the copies, and it takes the same job under the same ID, so trying it there adds nothing twice.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

from disqued.client import Backoff, Client, NotReplicated
from disqued.kombu.leases import log

PAUSES: Final = Backoff(first_s=0.05, longest_s=1.0)
_CHANCE: Final = random.Random()  # noqa: S311 - spreads load, protects no secret


def add_somewhere(client: Client, add: Callable[[], object], patience_s: float) -> None:
    """Call `add` until a node has the copies, at other nodes after each failure.

    Raises:
        NotReplicated: no node had them within `patience_s` seconds.
    """
    give_up_s = time.monotonic() + patience_s
    failures = 0
    while True:
        try:
            add()
        except NotReplicated as error:
            if time.monotonic() >= give_up_s:
                raise
            log.warning("too few copies of a message, using another node node=%s error=%r", client.node, str(error))
            client.use_another_node()
            time.sleep(PAUSES.wait_s(failures, _CHANCE))
            failures += 1
        else:
            return
