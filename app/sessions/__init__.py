"""Sessions: token pairs and their rotation, listing, revocation and signing out."""
