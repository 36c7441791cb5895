"""/auth/mfa."""

from flask import Blueprint

from app.mfa import models  # noqa: F401

bp = Blueprint("mfa", __name__, url_prefix="/api/v1/auth")
