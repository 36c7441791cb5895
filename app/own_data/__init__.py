"""What people may ask for about themselves: what happened, all that is stored, and its deletion."""
