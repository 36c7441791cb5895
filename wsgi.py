"""The WSGI application; gunicorn and the `flask` command find it by this file's name."""

# ruff: noqa: E402 - the imports are what takes long
import gc

# What is imported stays until the process ends. To look through it for garbage again and again, and
# once more at the exit, would be a third of the time that a command takes.
gc.disable()

import os
import sys

from app.core.config import Config
from app.core.environment import ConfigError
from app.factory import create_app

os.umask(0o077)  # whatever this process writes is nobody else's to read
try:
    app = create_app(Config.from_env(os.environ))
except ConfigError as error:
    sys.exit(str(error))
gc.freeze()
gc.enable()
