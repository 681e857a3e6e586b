"""The whole examination of a cluster: facts are read subject by subject, and each is judged at once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from controllers.worlds.argo.calls.untrusted import quantity, text
from hera_specon.cluster.access import Access
from hera_specon.doctor.checks.argo import check_argo
from hera_specon.doctor.checks.controller import check_controller
from hera_specon.doctor.checks.limits import bounds_of, check_limits
from hera_specon.doctor.checks.node_pools import check_node_pools
from hera_specon.doctor.checks.permissions import CREATE, OPEN_GATES, RESIZE, check_permissions
from hera_specon.doctor.checks.queues import check_queues
from hera_specon.doctor.checks.server import check_resizing, check_server
from hera_specon.doctor.checks.tryout import check_tryout
from hera_specon.doctor.checks.volumes import check_volumes
from hera_specon.doctor.facts import Allowed, LimitFacts, Unread
from hera_specon.doctor.findings import Finding, fault, unknown
from hera_specon.doctor.reading.cluster_facts import (
    read_argo,
    read_controller,
    read_limits,
    read_permissions,
    read_queues,
    read_server,
    read_volumes,
)
from hera_specon.doctor.sweep_needs import DEFAULT_ACCOUNT, SweepNeeds
from hera_specon.doctor.tryout.running import Build, TryOutOrder, try_out
from hera_specon.doctor.tryout.workflow import LEAST_CPU, image_workflow, sweep_workflow
from hera_specon.errors import SubmissionError
from hera_specon.submission.checks import check_for_cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What to examine.

    Attributes:
        needs: what the sweep needs; None without one.
        image: of the try-out's pod where there is no sweep; None for none.
        tracking_uri: MLflow's address, for such a pod.
        pod: whether to try out a pod at all.
        timeout_s: seconds for the try-out.
    """

    needs: SweepNeeds | None
    image: str | None
    tracking_uri: str | None
    pod: bool
    timeout_s: float


def examine(access: Access, wish: Wish, tell: Callable[[str], object]) -> Iterator[Finding]:
    """Yield what is found, subject by subject; where the API server does not answer, nothing else is asked.

    Args:
        access: the cluster.
        wish: what to examine.
        tell: says to a person what happens.
    """
    needs = wish.needs
    account = needs.account if needs else DEFAULT_ACCOUNT
    tell(f"asking {access.api.host} about itself and namespace {access.namespace}")
    server = read_server(access)
    yield from check_server(server)
    if isinstance(server.version, Unread):
        return
    yield from check_resizing(server)
    yield from check_node_pools(server)
    tell("looking for Argo")
    argo = read_argo(access)
    yield from check_argo(argo)
    tell("asking what you and the service account may do")
    permissions = read_permissions(access, account)
    yield from check_permissions(permissions)
    tell("looking for the controller")
    yield from check_controller(read_controller(access), needs.waits if needs else ())
    tell("reading quotas, limits and queues")
    limits = read_limits(access)
    yield from check_limits(limits, needs)
    yield from check_queues(read_queues(access), needs)
    if needs is not None:
        yield from _check_file(needs)
        yield from check_volumes(read_volumes(access, needs))
    if isinstance(argo.resources, Unread) or not wish.pod:
        advice = "Checks from within a pod were left out."
        yield unknown("try-out", "Argo is not there" if wish.pod else "--no-pod", advice)
        return
    yield from _try_out(access, wish, permissions.user, limits, tell)


def _check_file(needs: SweepNeeds) -> Iterator[Finding]:
    try:
        check_for_cluster(needs.manifest)
    except SubmissionError as error:
        advice = "specon submit refuses it until that is mended."
        for problem in error.problems:
            yield fault("sweep", problem, advice)


def _try_out(
    access: Access, wish: Wish, user: Allowed, limits: LimitFacts, tell: Callable[[str], object]
) -> Iterator[Finding]:
    needs = wish.needs
    if needs is None and wish.image is None:
        advice = "Name the sweep's file, or the trainer's image with --image, to try out a pod."
        yield unknown("try-out", "no image is known", advice, f"specon doctor -n {access.namespace} SWEEP.py")
        return
    if user.get(CREATE) is False:
        yield unknown("try-out", "you may not create workflows", "Mend that first, then run this again.")
        return
    order = TryOutOrder(
        cpu=_least_cpu(limits),
        gated=user.get(OPEN_GATES) is True,
        resize=user.get(RESIZE) is True,
        timeout_s=wish.timeout_s,
    )
    build: Build = partial(_build(wish), cpu=order.cpu, timeout_s=order.timeout_s)
    account = needs.account if needs else DEFAULT_ACCOUNT
    came_to = try_out(access, account, build, order, tell)
    yield from check_tryout(came_to, mlflow=needs is not None or wish.tracking_uri is not None)


def _build(wish: Wish) -> Build:
    if wish.needs is not None:
        return partial(sweep_workflow, wish.needs.manifest)
    return partial(image_workflow, wish.image or "", wish.tracking_uri)


def _least_cpu(limits: LimitFacts) -> float:
    """Return the cores that a pod requests to be small, and yet large enough for a LimitRange."""
    ranges = () if isinstance(limits.ranges, Unread) else limits.ranges
    bounds = [bound for found in ranges for bound in bounds_of(found) if text(bound, "type") == "Container"]
    return max([LEAST_CPU, *(quantity(bound, "min", "cpu") for bound in bounds)])
