"""Kinds of output: one file a kind, or a family that is one truth. `registry.KINDS` is all of them.

The vocabulary of the rule set is the one table of kinds; a file says what only code can.
"""
