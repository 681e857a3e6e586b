"""Four light trials whose author put the label of a queue on the pods of the workflow, and knows nothing of groups."""

from hera.workflows.models import Metadata

from controllers.core.kueue import LABEL_QUEUE
from tests.cluster.kueue_install import QUEUE
from tests.cluster.sweeps.descent_sweep import RATES, descent

w = descent(RATES)
w.pod_metadata = Metadata(labels={LABEL_QUEUE: QUEUE})
