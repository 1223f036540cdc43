"""Grafana's dashboards as code: `python -m dashboards` writes those of `dashboards/json`.

A module for each dashboard says what it shows (`model.py`), `build.py` makes of it what Grafana reads.
"""
