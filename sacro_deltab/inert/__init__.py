"""Bytes to content, running nothing. Imports `base` only."""
