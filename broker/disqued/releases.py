"""What a release must know about the files of other releases.

Whoever adds a kind of record to the append-only file, or changes one, so that an older release would take it for
damage, adds a row here. In a file of the new format a record says so before the first record that needs it, and older
releases leave the file alone.
"""

from __future__ import annotations

from typing import Final

FIRST_FORMAT: Final = 1
"""The format of files that the original loads too."""
EXTENDED_FORMAT: Final = 2
"""The format of files with records that the original does not know, or with attributes of jobs."""
FILE_FORMATS: Final[dict[tuple[int, int], int]] = {(0, 1): FIRST_FORMAT, (0, 2): EXTENDED_FORMAT}
"""The newest format of files that a release reads, by the first release (major, minor) that reads it."""
FILE_FORMAT: Final = max(FILE_FORMATS.values())
"""The newest format that this release reads."""
