"""Places the copies of a new job on other nodes before its client is told, and keeps copies for them."""

from disqued.core.subsystem import Subsystem

SUBSYSTEM = Subsystem("replication")
