"""All that we use of Hera and that Hera keeps private. A new release of Hera may change it: look here first.

Hera (7.1) has no public way to make a template class of one's own, to learn which ``with`` blocks stand around a line,
or to name the common type of its volumes. Everything else of ours uses ``hera.workflows`` and its models.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hera.workflows._context import _context
from hera.workflows._mixins import EnvIOMixin, ResourceMixin, TemplateMixin, VolumeMountMixin
from hera.workflows.metrics import Metrics, _BaseMetric
from hera.workflows.models import Metrics as ModelMetrics
from hera.workflows.models import Prometheus, Template
from hera.workflows.volume import _BaseVolume

ArgoMetric = _BaseMetric | Metrics | ModelMetrics | Prometheus
"""What Argo may tell Prometheus of a template's steps."""
ARGO_METRICS = (_BaseMetric, Metrics, ModelMetrics, Prometheus)
HeraVolume = _BaseVolume
"""Any of Hera's volumes: the base class of them all."""


@dataclass(kw_only=True)
class SweepTemplateBase(EnvIOMixin, TemplateMixin, ResourceMixin, VolumeMountMixin):
    """What Hera's Container and Script have in common, so that one class can add to either."""


@dataclass(kw_only=True)
class PartTemplate(TemplateMixin):
    """A further template of a sweep, built when the workflow is. It joins the workflow it is made under."""

    build: Callable[[], Template]

    def _build_template(self) -> Template:
        return self.build()


def open_blocks() -> Sequence[object]:
    """Return what the present line stands under: the Workflow first, the innermost Steps or DAG last."""
    return tuple(_context.pieces or ())
