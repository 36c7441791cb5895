"""Signing in by password, and the second step where one is due.

Every first factor, of whatever kind, ends in `service.complete_login`.
"""
