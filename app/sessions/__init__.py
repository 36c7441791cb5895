"""Sessions: token pair, access check, rotation, replay alarm, listing and revocation."""
