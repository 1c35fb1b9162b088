"""Membership inference against what was trained."""
