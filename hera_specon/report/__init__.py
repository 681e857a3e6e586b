"""One self-contained page about a run, made from its folder."""
