"""Everyday files (spreadsheets, documents, notebooks, pages, data frames) read by their formats' own libraries.

Everything here runs in a child process with limits of memory and time (`inert/everyday.py` starts it); no reader runs
macros, formulas or scripts, follows links or writes a file.
"""
