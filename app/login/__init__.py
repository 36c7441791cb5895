"""Password login, and the second step of a login where one is required.

Every first factor, of whatever kind, ends in `service.complete_login`.
"""
