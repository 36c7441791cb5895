"""Native threads under gevent's loop."""

import subprocess
import sys

from tests.support.servers import ROOT

PROGRAM = """
from gevent import monkey
monkey.patch_all()
import sys
from app.core.native_pool import NativePool

class Full:
    def write(self, text):
        raise OSError(28, "No space left on device")
    flush = write

def fail():
    raise ValueError("expected")

output, sys.stderr = sys.stdout, Full()
pool = NativePool(1)
try:
    pool.run(fail)
except ValueError as error:
    output.write(f"told: {error}, then {pool.run(int, '7')}")
"""


def test_an_exception_reaches_its_caller_though_nothing_can_be_printed():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=20
    )
    assert done.stdout == "told: expected, then 7"
