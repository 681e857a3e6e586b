"""A cluster and the namespace in it that a command is about."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kubernetes import config
from kubernetes.config.config_exception import ConfigException

from controllers.worlds.argo.api import KubeApi

_OWN_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True)
class Access:
    """An API server, and the namespace to work in there."""

    api: KubeApi
    namespace: str


def open_cluster(kubeconfig: str | None, context: str | None, namespace: str | None) -> Access:
    """Return access as kubectl would get it: by the file given, else KUBECONFIG, else the pod's own account.

    Args:
        kubeconfig: A file; None for the usual one.
        context: A context of that file; None for the current one.
        namespace: None for the context's own, else ``default``.

    Raises:
        SpeconError: There is no usable configuration.
    """
    files = kubeconfig or os.environ.get("KUBECONFIG") or None
    api = KubeApi.load(files, context)
    return Access(api, namespace or _namespace_of(files, context))


def _namespace_of(kubeconfig: str | None, context: str | None) -> str:
    if kubeconfig is None and context is None and _OWN_NAMESPACE.exists():
        return _OWN_NAMESPACE.read_text(encoding="utf-8").strip() or "default"
    try:
        contexts, active = config.list_kube_config_contexts(kubeconfig)
    except (ConfigException, OSError):
        return "default"
    chosen = next((one for one in contexts if one["name"] == context), None) if context else active
    return str(((chosen or {}).get("context") or {}).get("namespace") or "default")
