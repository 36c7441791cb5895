"""The clients of a storm: each acts as one kind of user, and checks what must hold for it."""
