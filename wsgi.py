"""The WSGI application; gunicorn and the `flask` command find it by this file's name."""

import os
import sys

from app.core.config import Config, ConfigError
from app.factory import create_app

os.umask(0o077)  # whatever this process writes is nobody else's to read
try:
    app = create_app(Config.from_env(os.environ))
except ConfigError as error:
    sys.exit(str(error))
