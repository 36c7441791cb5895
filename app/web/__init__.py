"""The Flask side of the kernel: envelope, guards, request security. Depends on no area."""
