"""Grafana dashboards and Prometheus alerts as code: `python -m dashboards` writes `dashboards/json`.

Each dashboard is a module that uses the types of `model.py`; `build.py` converts it to Grafana's JSON. The alerts are
in `dashboards.alerts`.
"""
