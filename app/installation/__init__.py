"""The installation as a whole: preparation, keys, cleanup, health, overview."""

from app.web.operation import ADMINISTRATION

TAG = ADMINISTRATION
