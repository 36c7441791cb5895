"""gunicorn's own messages, in the format of the application's log, without what clients sent."""

import logging
import re
from typing import Any

from gunicorn.glogging import Logger

from app.core.logs import TOKEN_LIKE

REFUSED, QUOTED = "Invalid request", re.compile(r"['\"].*['\"]", re.DOTALL)
QUERY = re.compile(r"\?[^\s'\"]*")


class RootLogger(Logger):
    """Hands gunicorn's messages to the handlers of the root logger."""

    def setup(self, cfg: Any) -> None:
        """Undo gunicorn's own handlers; called again at every reload."""
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True
        self.error_log.filters = [without_secrets]


def without_secrets(record: logging.LogRecord) -> bool:
    """Shorten a message that repeats a request: its query or path may be a mailed token."""
    message = record.getMessage()
    if message.startswith(REFUSED):  # any part of it, with whatever was in it
        message = QUOTED.sub("...", message)
    record.msg, record.args = TOKEN_LIKE.sub("...", QUERY.sub("?...", message)), None
    return True
