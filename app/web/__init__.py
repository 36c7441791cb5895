"""The Flask side of the kernel: envelope, guards, request security. Knows no area."""
