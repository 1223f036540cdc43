"""Alerts for Prometheus as data: `python -m alerts` writes the rules file, the index and the heads of the runbooks."""
