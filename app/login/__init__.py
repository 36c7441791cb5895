"""Signing in: the password, and the one seam every first factor ends in."""
