"""Confirming, in a session that goes on, that its owner is the one who asks."""
