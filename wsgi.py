"""The WSGI application; gunicorn and the `flask` command find it by this file's name."""

# ruff: noqa: E402 - the imports are the slow part
import gc

# Imported modules live until the process exits. Scanning them for garbage over and over, and once
# more at exit, would take a third of a command's run time.
gc.disable()

import os
import sys

from app.core.config import Config, ConfigError
from app.factory import create_app

os.umask(0o077)  # whatever this process writes is private to its user
try:
    app = create_app(Config.from_env(os.environ))
except ConfigError as error:
    sys.exit(str(error))
gc.freeze()
gc.enable()
