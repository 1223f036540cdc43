"""Hands the jobs of a leaving node to the nodes that stay."""

from disqued.core.subsystem import Subsystem

SUBSYSTEM = Subsystem("leaving")
