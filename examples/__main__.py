"""Print the folder of the examples: `cp -r "$(python -m elastic.examples)" .`"""

from __future__ import annotations

from pathlib import Path

print(Path(__file__).parent)
