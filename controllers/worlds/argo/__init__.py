"""The Argo world, a campaign's trials as pods of an Argo workflow.

News becomes an act in this order, and no folder imports one that comes after it:

1. ``calls``: the API server is asked, and told.
2. ``reading``: its objects arrive, and are kept as small records.
3. ``meaning``: these records become attempts, trials and room on nodes, and all of a campaign one snapshot.
4. ``deciding``: a policy's action becomes a command, or is refused; and each trial gets the command that it needs next,
   by the marks on its pods alone.
5. ``writing``: the command is carried out on other threads, and people are told.

``world`` takes each step in turn. A new kind of action has its command in ``deciding/actions``, and shows when it is
done in ``meaning/trials``; a new kind of command has its calls in ``writing/writer``.
"""
