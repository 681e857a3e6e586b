"""What to know of the devices that a sweep's trials claim, before it is submitted."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from controllers.core.devices import Devices, device_class_kind
from controllers.worlds.argo.calls.api import CLAIM_TEMPLATES, DEVICE_CLASSES, RESOURCE_SLICES, Resource
from controllers.worlds.argo.calls.errors import ForbiddenError, NotFoundError
from controllers.worlds.argo.calls.untrusted import mappings
from controllers.worlds.argo.meaning.claimed_devices import Offers
from controllers.worlds.argo.reading.resource_claims import asked_by_template
from controllers.worlds.argo.reading.resource_slices import project_class, project_slice
from controllers.worlds.argo.reading.versions import CLAIMS_RESIZE_SINCE, server_version
from hera_specon.cluster.access import Access

_PAGE = 200


def claimed_device_warnings(access: Access, asked: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield what stands against the devices that trials claim, and what it means for them; nothing where none do.

    No error: templates, classes and nodes may come later. What may not be read is believed to be right.

    Args:
        access: The cluster.
        asked: ResourceClaimTemplates by the names of a trial's claims, by the name of its sweep.
    """
    claiming = {sweep: templates for sweep, templates in asked.items() if templates}
    if not claiming:
        return
    offers = _offers(access)
    for sweep, templates in claiming.items():
        yield from _warnings(access, sweep, templates, offers)
    version = server_version(access.api.get("/version"))
    if version is not None and version < CLAIMS_RESIZE_SINCE:
        yield (
            f"the trials of {', '.join(claiming)} keep the share of CPU that they begin with: Kubernetes {version} "
            f"changes none of a pod with resource claims, {CLAIMS_RESIZE_SINCE.major}.{CLAIMS_RESIZE_SINCE.minor} does"
        )


def _warnings(access: Access, sweep: str, templates: Mapping[str, str], offers: Offers | None) -> Iterator[str]:
    total = Counter[str]()
    for name in templates.values():
        try:
            template = access.api.get(CLAIM_TEMPLATES.path(access.namespace, name))
        except ForbiddenError:
            return
        except NotFoundError:
            yield (
                f"there is no ResourceClaimTemplate {name!r} in namespace {access.namespace!r}, by which each trial of "
                f"{sweep} claims devices: its pods wait until somebody makes it"
            )
            return
        classes, why_not = asked_by_template(template)
        unread = [why_not] if why_not else [] if offers is None else [offers.why_uncounted(of) for of in classes]
        if why_not := next(filter(None, unread), ""):
            what = "it asks for " if not classes else ""
            yield (
                f"what each trial of {sweep} claims by ResourceClaimTemplate {name!r} is not counted ({what}{why_not}):"
                " no policy chooses its nodes, the scheduler does"
            )
            return
        total.update(classes)
    if offers is not None:
        yield from _lacking(sweep, total, offers)


def _lacking(sweep: str, total: Mapping[str, int], offers: Offers) -> Iterator[str]:
    wanted = Devices.of({device_class_kind(name): count for name, count in total.items()})
    if any(wanted.within(there) for there in offers.by_node.values()):
        return
    most = {of: max((there.count(of) for there in offers.by_node.values()), default=0) for of, _ in wanted.counts}
    there = ", ".join(f"{count} {kind}" for kind, count in most.items())
    yield f"each trial of {sweep} claims {wanted}, but no node has as much (at most {there}): they wait"


def _offers(access: Access) -> Offers | None:
    """Return what drivers offer, None where that may not be read."""
    try:
        slices = [part for item in _all(access, RESOURCE_SLICES) if (part := project_slice(item)) is not None]
        classes = [one for item in _all(access, DEVICE_CLASSES) if (one := project_class(item)) is not None]
    except (ForbiddenError, NotFoundError):
        return None
    return Offers(slices, classes)


def _all(access: Access, resource: Resource) -> Iterator[dict[str, Any]]:
    for page in access.api.pages(resource.path(), {}, _PAGE):
        yield from (dict(item) for item in mappings(page, "items"))
