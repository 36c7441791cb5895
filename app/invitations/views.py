"""/auth/invitations."""

from flask import Blueprint

from app.invitations import models  # noqa: F401

bp = Blueprint("invitations", __name__, url_prefix="/api/v1/auth")
