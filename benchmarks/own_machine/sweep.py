"""The trials as a sweep of ours; the order in the folder where it runs says which."""

from pathlib import Path

from hera.workflows import Resources, Workflow

from benchmarks.own_machine.tools import Order
from benchmarks.own_machine.workloads import WORKLOADS
from hera_specon import Sweep, minimize

_BESIDE = 100
"""MiB that a trial holds beside its data."""

order = Order.read(Path())
workload = WORKLOADS[order.workload].sized(order.sizes)

with Workflow(generate_name="own-machine-", entrypoint="own-machine") as w:
    Sweep(
        name="own-machine",
        image="trainer",
        command=["python", "-m", "benchmarks.own_machine.hooked"],
        args=list(order.common),
        space=workload.space,
        search=workload.search,
        trials=workload.trials,
        seed=order.seed,
        objective=minimize("loss"),
        resources=Resources(memory_request=f"{workload.memory + _BESIDE}Mi") if workload.memory else None,
    )
