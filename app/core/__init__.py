"""Shared kernel below HTTP. Knows no area, and of Flask what wrapping its extensions takes."""
