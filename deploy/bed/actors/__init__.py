"""The clients of a run: each does what a kind of user does, and knows what must be true then."""
