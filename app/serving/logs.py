"""gunicorn's own messages, in the format of the application's log."""

from typing import Any

from gunicorn.glogging import Logger


class RootLogger(Logger):
    """Hands gunicorn's messages to the handlers of the root logger."""

    def setup(self, cfg: Any) -> None:
        """Undo gunicorn's own handlers; called again at every reload."""
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True
