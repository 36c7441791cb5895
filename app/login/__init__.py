"""Signing in by password, and the second step where one is due.

Every first factor ends in its `complete_login`.
"""
