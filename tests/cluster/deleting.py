"""Deletes at the API server, which the controller makes none of."""

from controllers.worlds.argo.calls.api import KubeApi


def delete(api: KubeApi, path: str) -> None:
    """Delete the object at ``path``."""
    api._json("DELETE", path)
