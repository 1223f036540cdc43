"""Alerting and recording rules for Prometheus.

`python -m dashboards.alerts` writes the rules file, the index of the runbooks and the head of each runbook.
"""
