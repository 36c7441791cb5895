"""Teams as administrators see and change them."""

from app.web.operation import ADMINISTRATION

TAG = ADMINISTRATION
