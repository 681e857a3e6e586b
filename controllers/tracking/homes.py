"""Where sweeps are at home: the namespace that the first record of them in MLflow names. Nobody else goes on with them.

A workflow may continue the sweep of another one, which may be deleted or forgotten by then; MLflow's record stays.
"""

import itertools
from collections.abc import Iterator
from typing import Final

from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from controllers.core.labels import root_of
from mlflow_hooks import contract

NAMESPACE_TAG: Final = "specon.namespace"
"""On the run of a sweep: the namespace of its workflow; on one machine there is none."""
_PAGE: Final = 100
"""Experiments, or runs, of a page."""
_MOST_PAGES: Final = 20
"""Pages that are read: enough for two thousand, and no endless list."""


def home_of(client: MlflowClient, sweep_uid: str) -> str | None:
    """Return the namespace that first recorded a sweep whose id begins with ``sweep_uid``; None where none did.

    It holds for all that is called alike up to the first dot: ``a`` with a sweep ``b.c`` has the trials of ``a.b`` with
    a sweep ``c``.

    Args:
        client: of the tracking server.
        sweep_uid: letters, digits, ``.``, ``_`` and ``-``.
    """
    runs = [
        run for experiments in experiment_pages(client) for run in _first_of(client, experiments, root_of(sweep_uid))
    ]
    first = min(runs, key=lambda run: int(run.info.start_time), default=None)
    return None if first is None else str(first.data.tags[NAMESPACE_TAG])


def experiment_pages(client: MlflowClient) -> Iterator[list[str]]:
    """Yield the ids of all experiments, a hundred at a time; of so many that nobody has them, the first two thousand.

    Raises:
        MlflowException: MLflow is away or refuses.
    """
    token: str | None = None
    for _ in range(_MOST_PAGES):
        page = client.search_experiments(max_results=_PAGE, page_token=token)
        if page:
            yield [str(experiment.experiment_id) for experiment in page]
        token = page.token
        if not token:
            return


def _first_of(client: MlflowClient, experiments: list[str], root: str) -> Iterator[Run]:
    """Yield the oldest run of a sweep of ``root``: what MLflow finds may only look like it."""
    begun = f"tags.`{contract.TAG_SWEEP_ID}` LIKE '{root}.%' AND tags.`{NAMESPACE_TAG}` != ''"
    token: str | None = None
    for _ in range(_MOST_PAGES):
        page = client.search_runs(
            experiments, begun, max_results=_PAGE, order_by=["attributes.start_time ASC"], page_token=token
        )
        own = (run for run in page if root_of(run.data.tags[contract.TAG_SWEEP_ID]) == root)
        if first := list(itertools.islice(own, 1)):
            yield first[0]
            return
        token = page.token
        if not token:
            return
