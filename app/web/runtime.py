"""Runtime of the application that handles this request or command."""

from flask import Flask, current_app

from app.core.runtime import Runtime

EXTENSION = "gatehouse"


def install(app: Flask, rt: Runtime) -> None:
    """Give the application its runtime."""
    app.extensions[EXTENSION] = rt


def runtime() -> Runtime:
    """Return the current application's runtime."""
    rt: Runtime = current_app.extensions[EXTENSION]
    return rt
