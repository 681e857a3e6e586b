"""The Argo world, a campaign's trials as pods of an Argo workflow.

A move of a trial crosses these files in this order:

1. ``api``, ``watch``, ``view``: the API server's objects arrive and are kept as small records, which ``untrusted``,
   ``definitions``, ``pods``, ``workflows`` and ``nodes`` read out of them.
2. ``snapshot``, ``trials``: one campaign's records become trials and nodes as policies see them.
3. ``world``: a policy's ``Migrate`` is checked against them and taken on.
4. ``commands``: what each trial needs next, decided from the marks on its pods alone.
5. ``executor``, ``pod_changes``, ``events``: it is done on other threads, and told to people.
"""
