"""Keys, encryption, hashes and randomness."""
