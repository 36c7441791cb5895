"""Sessions: the pair of tokens and its renewal, listing and revocation, signing out."""
