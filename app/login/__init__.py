"""Signing in by password, and the second step where one is due.

Every first factor, of whatever kind, ends in `completion.complete_login`. A login that needs a
second one is a pending login in Redis until `second_factor.verify` completes it.
"""
