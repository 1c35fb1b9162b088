"""The folder that leaves, made from judged outputs in canonical bytes; whoever checks makes it again and compares.

What a session writes and what `check` expects come from the same functions: a byte that they would not write is
refused without anybody having to think of it beforehand. Made again from evidence that nobody signed, it proves
consistency only.
"""
