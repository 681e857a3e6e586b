"""Why the share of a running pod was not changed, by what the API server, its admission and the kubelet say of it.

They say it in words only, which differ by version. What is not known here is passed on as it was said.
"""

from dataclasses import dataclass
from typing import Final

from controllers.worlds.argo.calls.errors import ApiError, ForbiddenError, NotFoundError, RejectedError

_MOST_SHOWN: Final = 300


@dataclass(frozen=True, slots=True)
class ResizeAnswer:
    """Why a share was refused.

    Attributes:
        why: in words for people.
        advice: what the owner of the trial, or of the cluster, can do; empty where nobody knows.
        any_amount: whether every other share of this pod would be refused as well, now and most likely for good.
    """

    why: str
    advice: str = ""
    any_amount: bool = False

    @property
    def line(self) -> str:
        """Both, in one line."""
        return f"{self.why}; {self.advice}" if self.advice else self.why


_OLD_NODE: Final = ResizeAnswer(
    "its node's kubelet changes no share of a running pod",
    "upgrade the node to Kubernetes 1.33 or newer, and leave the feature gate InPlacePodVerticalScaling on",
    any_amount=True,
)
_POD_LEVEL: Final = ResizeAnswer(
    "the pod has resources of its own beside those of its containers, and this Kubernetes keeps them as they are",
    "give the resources to the container, or upgrade Kubernetes to 1.36 or newer",
    any_amount=True,
)
_CLAIMS: Final = ResizeAnswer(
    "this Kubernetes changes no share of a pod with resource claims",
    "ask for devices by resource limits instead of claims, or upgrade Kubernetes to 1.37 or newer",
    any_amount=True,
)
_EXCLUSIVE: Final = ResizeAnswer(
    "its node gives pods of quality Guaranteed whole cores or memory of their own, and changes none of them",
    "leave the limits out, or set them above the requests, so that the pod is Burstable",
    any_amount=True,
)
_QUALITY: Final = ResizeAnswer(
    "its quality of service would be another one",
    "leave the limits out, or set them above the requests, so that the pod is Burstable",
    any_amount=True,
)
_SWAP: Final = ResizeAnswer(
    "its containers may swap, and its node changes no share of such",
    "turn swap off on the nodes of trials",
    any_amount=True,
)
_PLATFORM: Final = ResizeAnswer("its node changes no share of a running pod", "use Linux nodes", any_amount=True)
_PERMISSION: Final = ResizeAnswer(
    "this controller's account may not patch pods/resize",
    "apply the manifests again; docs/reference/permissions.md lists every permission",
    any_amount=True,
)
_NO_SUBRESOURCE: Final = ResizeAnswer(
    "the API server has no pods/resize", "upgrade Kubernetes to 1.33 or newer", any_amount=True
)
_QUOTA: Final = ResizeAnswer(
    "the namespace's quota has no room for it",
    "raise the ResourceQuota, or start fewer trials at a time; a share that falls frees it once the kubelet has acted",
)
_RANGE: Final = ResizeAnswer("a LimitRange of the namespace forbids it", "ask the administrator of the namespace")
_ADMISSION: Final = ResizeAnswer(
    "an admission policy of the cluster forbids it", "have it except the subresource pods/resize"
)
_TOO_LARGE: Final = ResizeAnswer("its node could never give as much")
_FULL: Final = ResizeAnswer("its node has no room for it now")

# The first whose words are in what was said. Kubernetes 1.33 to 1.37 say them so.
_BY_WORDS: Final = (
    ("pod running on node without support for resize", _OLD_NODE),
    ("inplacepodverticalscaling is disabled", _OLD_NODE),
    ("requires features", _OLD_NODE),
    ("pods with pod-level resources", _POD_LEVEL),
    ("inplacepodlevelresourcesverticalscaling is disabled", _POD_LEVEL),
    ("resource claims cannot be resized", _CLAIMS),
    ("only cpu and memory resources are mutable", _CLAIMS),
    ("resize is infeasible for guaranteed pods", _EXCLUSIVE),
    ("qos class may not change", _QUALITY),
    ("containers with swap", _SWAP),
    ("not supported on windows", _PLATFORM),
    ("windows pods", _PLATFORM),
    ("only supported on linux", _PLATFORM),
    ("not supported on this node", _PLATFORM),
    ('cannot patch resource "pods/resize"', _PERMISSION),
    ("exceeded quota", _QUOTA),
    ("maximum cpu usage per", _RANGE),
    ("minimum cpu usage per", _RANGE),
    ("cpu max limit to request ratio per", _RANGE),
    ("denied request", _ADMISSION),
    ("denied the request", _ADMISSION),
    ("enough allocatable resources", _TOO_LARGE),
    ("enough capacity", _TOO_LARGE),
    ("enough resource", _FULL),
)
_NO_SUCH_PATH: Final = "could not find the requested resource"


def answer_in(said: str) -> ResizeAnswer:
    """Return what ``said`` means; its own words where nobody knows, and beside ours where they name an amount."""
    lower, shown = said.lower(), said[:_MOST_SHOWN]
    for words, answer in _BY_WORDS:
        if words in lower:
            why = answer.why if answer.any_amount else f"{answer.why} ({shown})"
            return ResizeAnswer(why, answer.advice, answer.any_amount)
    return ResizeAnswer(shown or "it was refused without a reason")


def answer_to(failure: ApiError) -> ResizeAnswer | None:
    """Return what a failed call for a share means, None where it was not refused: the same call may work later."""
    if isinstance(failure, NotFoundError):
        # A pod that is gone has a name in this message.
        return _NO_SUBRESOURCE if _NO_SUCH_PATH in str(failure) else None
    return answer_in(str(failure)) if isinstance(failure, ForbiddenError | RejectedError) else None
