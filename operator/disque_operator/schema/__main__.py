"""Write the CustomResourceDefinitions into a folder: `python -m disque_operator.schema manifests/crd`."""

from __future__ import annotations

import sys
from pathlib import Path

from disque_operator.schema.definition import RESOURCES, page

if __name__ == "__main__":
    for resource in RESOURCES:
        Path(sys.argv[1], f"{resource.plural}.yaml").write_text(page(resource))
