"""How large workflows of many trials are, and the record that Argo keeps of them in their status.

    python -m benchmarks.workflow_sizes [--trials 1000 5000 20000]

The nodes have the shapes of Argo 4.1.2 (NodeStatus) once each trial has ended after two attempts, with times, hosts and
resources drawn by chance. Argo packs them as here: JSON, gzip, base64.
"""

import argparse
import base64
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final

from hera.workflows import Resources, Workflow

from benchmarks.scale.argo import node_id, timestamp
from controllers.core import labels
from controllers.worlds.argo.reading.planned import item_keys
from hera_specon import Sweep, choice, log_uniform, minimize, uniform
from hera_specon.settings import Arrivals
from hera_specon.submission.size import Size, size_of

Json = dict[str, Any]
NAME: Final = "vae-sweep-x7k2p"
_BEGAN: Final = 1_790_000_000.0
_ATTEMPTS: Final = 2
_HOSTS: Final = 50


def workflow_of(trials: int, hyperparameters: int = 3, arrivals: Arrivals | None = None) -> Json:
    """Return a workflow of ``trials`` trials with three hyperparameters or more."""
    space = {
        "learning_rate": log_uniform(1e-4, 1e-1),
        "batch_size": choice(32, 64, 128),
        "weight_decay": log_uniform(1e-6, 1e-2),
        **{f"param_{number}": uniform(0, 1) for number in range(hyperparameters - 3)},
    }
    with Workflow(name=NAME, entrypoint="vae") as workflow:
        Sweep(
            name="vae",
            image="hera-specon/trainer:0.2.0",
            command=["python", "-m", "jobs.vae"],
            space=space,
            trials=trials,
            objective=minimize("loss"),
            arrivals=arrivals,
            resources=Resources(cpu_request="100m", memory_request="256Mi"),
            state_claim="specon-state",
        )
    made: Json = json.loads(json.dumps(workflow.to_dict()))
    return made


def record_of(workflow: Json) -> Json:
    """Return the nodes of a workflow that is over."""
    chance = Random(1)  # noqa: S311 - no secret
    (step,) = next(one for one in workflow["spec"]["templates"] if one["name"] == "vae")["steps"][0]
    trials = [list(_trial(step, number, item, chance)) for number, item in enumerate(step["withItems"])]
    nodes = [node for trial in trials for node in trial]
    group, last = f"{NAME}[0]", [trial[-1]["id"] for trial in trials]
    ends = {"startedAt": timestamp(_BEGAN), "finishedAt": timestamp(_BEGAN + 86_400)}
    nodes.append(_node(group, "StepGroup", "", [trial[0]["id"] for trial in trials]) | ends)
    nodes.append(_node(NAME, "Steps", "vae", [node_id(NAME, group)]) | ends | {"outboundNodes": last})
    return {node["id"]: node for node in sorted(nodes, key=lambda node: str(node["id"]))}


def _trial(step: Json, number: int, item: Mapping[str, Any], chance: Random) -> Iterator[Json]:
    shown = ",".join(sorted(f"{key}:{value}" for key, value in item.items()))
    name = f"{NAME}[0].{step['name']}({number}:{shown})"
    given = [{"name": one, "value": str(item[key])} for one, key in item_keys(step).items() if key in item]
    if step["template"].endswith(labels.SUFFIX_ARRIVAL):
        first, wait, then = f"{name}[0]", f"{name}[0].wait", f"{name}[1]"
        times = _times(chance)
        yield _node(name, "Steps", "vae-arrival", [node_id(NAME, first)], given) | times
        yield _node(first, "StepGroup", "vae-arrival", [node_id(NAME, wait)]) | times
        yield _node(wait, "Suspend", "vae-delay", [node_id(NAME, then)], given[:1]) | times
        name = f"{then}.trial"
        yield _node(then, "StepGroup", "vae-arrival", [node_id(NAME, name)]) | times
    attempts = [f"{name}({attempt})" for attempt in range(_ATTEMPTS)]
    done = {"outputs": {"exitCode": "0"}}
    yield _node(name, "Retry", "vae-trial", [node_id(NAME, one) for one in attempts], given) | _times(chance) | done
    for attempt in attempts:
        host = {"hostNodeName": f"node-{chance.randrange(_HOSTS):03d}", "taskResultSynced": True}
        marks = {"nodeFlag": {"retried": True}, **host, **done}
        yield _node(attempt, "Pod", "vae-trial", [], given) | _times(chance) | marks


def _node(name: str, kind: str, template: str, children: Sequence[str], given: Sequence[Json] = ()) -> Json:
    shared = {"templateName": template, "templateScope": f"local/{NAME}", "phase": "Succeeded", "progress": "1/1"}
    about = {"id": node_id(NAME, name), "name": name, "displayName": name.rpartition("].")[2], "type": kind}
    inputs = {"inputs": {"parameters": list(given)}} if given else {}
    below = {"children": list(children)} if children else {}
    return {**about, **shared, "boundaryID": NAME, **inputs, **below}


def _times(chance: Random) -> Json:
    began, lasted = _BEGAN + chance.uniform(0, 86_400), chance.uniform(300, 7200)
    used = {"cpu": int(lasted), "memory": int(lasted * chance.uniform(2, 9))}
    return {"startedAt": timestamp(began), "finishedAt": timestamp(began + lasted), "resourcesDuration": used}


def packed(nodes: Json) -> int:
    """Return how many bytes Argo's record takes once it is packed."""
    return len(base64.b64encode(gzip.compress(_text(nodes), 6, mtime=0)))


def _text(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _row(trials: int, size: Size, nodes: Json) -> str:
    figures = (trials, size.workflow, len(nodes), len(_text(nodes)), packed(nodes), size.record)
    return f"| {' | '.join(f'{figure:,}' for figure in figures)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, nargs="+", default=[1000, 5000, 20_000])
    print("| trials | workflow | nodes | record | record, packed | as estimated |")
    print("|---|---|---|---|---|---|")
    for trials in parser.parse_args().trials:
        workflow = workflow_of(trials)
        print(_row(trials, size_of(workflow), record_of(workflow)), flush=True)


if __name__ == "__main__":
    main()
