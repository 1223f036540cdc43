"""Write the CustomResourceDefinition to standard output: `python -m disque_operator.schema`."""

from __future__ import annotations

import sys

from disque_operator.schema.definition import page

if __name__ == "__main__":
    sys.stdout.write(page())
