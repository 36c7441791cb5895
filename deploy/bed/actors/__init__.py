"""The clients of a run: each acts as one kind of user, and checks what must hold for it."""
