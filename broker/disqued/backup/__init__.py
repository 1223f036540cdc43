"""Backups of clusters: makes them, checks them, deletes old ones, and restores them to a new cluster.

A backup is a folder in an object store or on a disk: a copy of the jobs of each member, and a manifest, which is
written last. docs/architecture/backup.md explains why it is consistent. Needs the extra `backup`.
"""
