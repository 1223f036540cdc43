"""Imports every module of some packages, to check that an image contains all dependencies.

python imports.py disqued disque_operator
"""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import walk_packages


def main() -> None:
    """Import all modules of the packages on the command line, except `__main__` modules, which would run."""
    for package in map(import_module, sys.argv[1:]):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(".__main__"):
                import_module(module.name)


if __name__ == "__main__":
    main()
