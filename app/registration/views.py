"""/auth/register."""

from flask import Blueprint

bp = Blueprint("registration", __name__, url_prefix="/api/v1/auth")
