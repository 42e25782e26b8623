"""show.py FOLDER [ARGUMENTS...]: write arguments and environment to FOLDER/<round>.<local rank>.json."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

name = f"{os.environ['ELASTIC_ROUND']}.{os.environ['LOCAL_RANK']}.json"
Path(sys.argv[1], name).write_text(json.dumps({"arguments": sys.argv[2:], "environment": dict(os.environ)}))
