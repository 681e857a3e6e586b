"""A sweep that goes on here although it was begun elsewhere: on another machine, in a cluster, or in another folder.

Its trials have the ids that they had there, so they find their checkpoints in the store and their runs in MLflow.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from controllers.core import labels
from controllers.core.errors import SpeconError
from controllers.local_run.order import Order
from controllers.local_run.trial_runs import params_of
from controllers.worlds.local.workflow import PlannedTrial, PodStep
from mlflow_hooks import contract
from mlflow_hooks.errors import BadEnvironmentError
from mlflow_hooks.foreign_json import parsed
from mlflow_hooks.head import Head
from mlflow_hooks.objects import ObjectStore, StoreError
from mlflow_hooks.run_artifacts import ADDRESS as RUN_ARTIFACTS
from mlflow_hooks.state_folder import IDENTITY
from mlflow_hooks.store_address import open_store

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MOST_TOLD: Final = 200


def check_one_policy(order: Order) -> None:
    """Refuse to go on with a sweep that was begun elsewhere under several policies: its trials have one identity.

    Raises:
        SpeconError: there are several.
    """
    if order.continues and (order.settings.adds_policies or len(order.policies) > 1):
        message = (
            f"-p {labels.PARAMETER_CONTINUE}={order.continues} goes on with one sweep, under one policy: "
            "leave other policies, --repeats and --add-policy out"
        )
        raise SpeconError(message)


def check_continued(order: Order) -> str:
    """Return what to say of a sweep that was begun elsewhere, once its trials are found in the store.

    Raises:
        SpeconError: they cannot go on here; says why.
    """
    uid, given = order.continues, f"-p {labels.PARAMETER_CONTINUE}={order.continues}"
    if not _ID.fullmatch(uid):
        message = f"{given}: an id has up to 100 letters, digits, '.', '_' and '-'"
        raise SpeconError(message)
    stores: dict[str, ObjectStore] = {}
    found, trials = 0, order.program(uid).trials()
    try:
        for planned in trials:
            address = _address(planned.step, given)
            stores[address] = stores.get(address) or open_store(address)
            found += _is_there(stores[address], planned.step, given)
    except (BadEnvironmentError, StoreError) as error:
        message = f"{given}: the store cannot be read from here: {error}"
        raise SpeconError(message) from error
    where = ", ".join(stores)
    if not found:
        message = (
            f"{given}: no trial of that sweep is in {where}. `specon run` and `specon submit` say the id of a sweep "
            "when they begin it; in the store, the names of its trials begin with it"
        )
        raise SpeconError(message)
    return f"{found} of {len(trials)} trials go on from what {where} has of sweep {uid}"


def way_on(planned: Sequence[PlannedTrial], uid: str) -> list[str]:
    """Return how the sweep could go on elsewhere, for a sweep with the id ``uid`` whose trials are kept in a store."""
    stores = {trial.step.env.get(contract.ENV_STATE_STORE, "") for trial in planned}
    stores -= {"", RUN_ARTIFACTS}
    if not stores:
        return []
    where = ", ".join(sorted(stores))
    return [f"its trials are kept in {where}; elsewhere they go on with -p {labels.PARAMETER_CONTINUE}={uid}"]


def _address(step: PodStep, given: str) -> str:
    """Return where a trial's checkpoints are, which must be a place that more than one machine reaches."""
    sweep, address = step.labels.get(labels.LABEL_SWEEP, ""), step.env.get(contract.ENV_STATE_STORE, "")
    if address in {"", RUN_ARTIFACTS}:
        message = (
            f"{given}: sweep {sweep!r} names no store that this machine shares with others: give it state='s3://...' "
            "or another address (with state='mlflow', trials here keep their checkpoints in their folders)"
        )
        raise SpeconError(message)
    if labels.ANNOTATION_SEARCH in step.annotations:
        message = (
            f"{given}: sweep {sweep!r} searches, and a search that begins again would give its trials other "
            "hyperparameters than their checkpoints have"
        )
        raise SpeconError(message)
    return address


def _is_there(store: ObjectStore, step: PodStep, given: str) -> bool:
    """Return whether the store has the trial, with the hyperparameters that it has here."""
    trial = step.env[contract.ENV_TRIAL_ID]
    head = store.read(f"{trial}/head.json")
    if head is None:
        return False
    there, here = _params(Head.decode(head[0]).notes.get(IDENTITY, "")), params_of(step.environment)
    different = [name for name, value in here.items() if there and there.get(name) != value]
    if different:
        name = different[0]
        message = (
            f"{given}: trial {trial} has {name}={str(there.get(name))[:_MOST_TOLD]} there and {name}={here[name]} "
            "here: leave space, seed, search and trials as they were"
        )
        raise SpeconError(message)
    return True


def _params(text: str) -> dict[str, Any]:
    """Return the hyperparameters in the text of an identity; none where it is not one."""
    try:
        params = parsed(text)["params"]
    except (ValueError, TypeError, KeyError):
        return {}
    return params if isinstance(params, dict) else {}
