"""The page about a sweep while it runs: it shows what the report shows, and changes without being loaded again.

It reads what a run keeps, and asks for trials as ``specon pause`` does. It drives nothing, so a sweep does not need it.
"""
