"""Where the workers of one master keep their metrics until somebody asks for them."""

import os
import shutil
from functools import cache
from pathlib import Path


@cache
def prepare(folder: Path) -> None:
    """Empty `folder` and tell prometheus_client to use it; call before that is imported.

    Once per process: gunicorn reads its configuration again at a reload, while workers write.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
