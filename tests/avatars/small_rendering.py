"""Rendering as it is, to smaller avatars: to write the large ones takes most of its time."""

from app.avatars import files
from app.avatars.rendering import render

__all__ = ["render"]

files.SIZES = (64, 32)
