"""gunicorn.conf.py on a machine whose clock somebody may set: BED_CLOCK names a file with seconds.

The file holds one double, by which this process's clock is wrong. Only the wall clock is: time that
is measured goes on.
"""

import os
import struct
from datetime import datetime, timedelta
from pathlib import Path

_path = Path("gunicorn.conf.py")
exec(compile(_path.read_text(), _path, "exec"))

from app.core.clock import SystemClock  # noqa: E402 - gevent's patches come first

_file = os.open(os.environ["BED_CLOCK"], os.O_RDONLY)
_right = SystemClock.now


def _wrong(clock: SystemClock) -> datetime:
    (seconds,) = struct.unpack("d", os.pread(_file, 8, 0))
    return _right(clock) + timedelta(seconds=seconds)


SystemClock.now = _wrong  # type: ignore[method-assign]
