"""Health check for containers: `python -m app.serving.health`, exit code 0 or 1."""

import os
import sys

from app.core.config import Config, ConfigError
from app.serving.address import Address


def main() -> int:
    """Check the service that this environment configures, on this machine."""
    try:
        return 0 if Address.of(Config.from_env(os.environ).bind).is_healthy() else 1
    except ConfigError:
        return 1


if __name__ == "__main__":
    sys.exit(main())
