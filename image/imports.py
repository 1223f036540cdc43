"""Imports every module of some packages: a check that an image has all that its programs need.

python imports.py disqued disque_operator
"""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import walk_packages


def main() -> None:
    """Import all modules of the packages that the arguments name, but for those that are programs."""
    for package in map(import_module, sys.argv[1:]):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(".__main__"):
                import_module(module.name)


if __name__ == "__main__":
    main()
