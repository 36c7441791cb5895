"""Thousands of streams need more open files than a shell allows by default."""

import subprocess
import sys

import pytest

from tests.support.servers import ROOT

PROGRAM = """
import resource, sys
from app.serving import open_files
soft, hard, connections = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(open_files.raise_limit(connections), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "connections", "then"),
    [
        (256, 8192, 1000, 4072),
        (256, 1500, 1000, 1500),
        (5000, 8192, 1000, 5000),
    ],
)
def test_the_limit_is_raised_as_far_as_needed_and_allowed(soft, hard, connections, then):
    command = [sys.executable, "-c", PROGRAM, *map(str, (soft, hard, connections))]
    told = subprocess.check_output(command, text=True, cwd=ROOT)
    assert told.split() == [str(then), str(then), str(hard)]
