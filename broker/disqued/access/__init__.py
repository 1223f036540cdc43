"""Access control: the users of a node, ACL, and the files that users and passwords come from.

Which user a session is, and what it may run, is in `core.runtime` (`authentication`, `authorization`), because AUTH,
HELLO and the dispatcher need it.
"""

from disqued.access import acl
from disqued.access.room import NAME, AccessRoom
from disqued.core.runtime.counters import ACCESS_COUNTERS
from disqued.core.runtime.subsystem import Subsystem

SUBSYSTEM = Subsystem(NAME, AccessRoom, commands=(acl.COMMAND,), counters=ACCESS_COUNTERS)
