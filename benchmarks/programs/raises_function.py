"""raises_function.py WORKERS HOW RANK [METHOD]: the training of raises.py as a function under `elastic.launch`."""

from __future__ import annotations

import sys

from raises import main  # type: ignore[import-not-found]

import elastic

if __name__ == "__main__":
    workers, how, rank, *method = sys.argv[1:]
    settings = elastic.LaunchSettings(max_restarts=0, nproc_per_node=int(workers), start_method=(*method, "spawn")[0])  # type: ignore[arg-type]
    try:
        elastic.launch(settings)(main, how, rank)
    except elastic.ChildFailedError as error:
        sys.exit(str(error))
