"""gunicorn's own messages, in the format of the application's log, with client data redacted."""

import logging
import re
from typing import Any

from gunicorn.glogging import Logger

from app.core.logs import TOKEN_LIKE

REFUSED, QUOTED = "Invalid request", re.compile(r"['\"].*['\"]", re.DOTALL)
QUERY = re.compile(r"\?[^\s'\"]*")


class RootLogger(Logger):
    """Passes gunicorn's messages to the handlers of the root logger."""

    def setup(self, cfg: Any) -> None:
        """Remove gunicorn's own handlers; called again at every reload."""
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True
        self.error_log.filters = [without_secrets]


def without_secrets(record: logging.LogRecord) -> bool:
    """Redact a message that quotes a request, whose query or path may hold a mailed token."""
    message = record.getMessage()
    if message.startswith(REFUSED):  # it may quote any part of the request
        message = QUOTED.sub("...", message)
    record.msg, record.args = TOKEN_LIKE.sub("...", QUERY.sub("?...", message)), None
    return True
