"""Trains the network of ``kais`` in the simulator, and ships it.

    python -m benchmarks.train_kais [--cpu-hours 1] [--processes 2] [--folder .specon/kais] [--ship]

It runs until it has used its budget of CPU hours, and can be stopped at any time: the same command goes on from the
last checkpoint. First the network is taught the places and moves of ``ahead`` (a warm start by imitation). Then it
learns from what came of its own choices: each training sweep is simulated several times with choices drawn by their
scores, and a choice counts by what was to be paid from then on, less the mean of what was to be paid from that moment
on in the other runs of the same sweep (an input-driven baseline: Mao et al., "Variance Reduction for Reinforcement
Learning in Input-Driven Environments", 2019, in place of a critic that is learnt). The objective is PPO's.

Every few rounds the best choices are judged on the validation sweeps. ``--ship`` writes the weights that did best there
into the package, and the table of the training to docs/experiments/kais-training.md.
"""

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from benchmarks.train_kais.episodes import Episode, explored, judged, under
from benchmarks.train_kais.learning import Twin, improved, taught
from benchmarks.train_kais.simulations import Simulations
from controllers.lab.worker_pool import worker_pool
from controllers.policies.ahead import Ahead
from controllers.policies.comparison.default_scheduler import Default
from controllers.policies.kais.grid import Floats
from controllers.policies.kais.weights import RANGES, SHIPPED, Trained, write

SEED: Final = 17
LESSONS: Final = 24
"""Rounds in which ``ahead`` teaches."""
TAUGHT_SWEEPS: Final = 24
SWEEPS, DRAWS = 6, 6
"""Training sweeps of a round, and runs of each."""
JUDGED_EVERY: Final = 10
JUDGED: Final = 24
"""Validation sweeps."""
TEACHING_RATE, RATE = 3e-3, 3e-4
HOUR: Final = 3600.0
PAGE: Final = Path("docs/experiments/kais-training.md")


@dataclass
class Training:
    """All that a checkpoint holds."""

    twin: Twin
    optimiser: torch.optim.Optimizer
    round: int = 0
    cpu_s: float = 0.0
    episodes: int = 0
    ranges: dict[str, Floats] = field(default_factory=dict)
    best: dict[str, Any] = field(default_factory=dict)
    log: list[dict[str, float]] = field(default_factory=list)
    references: dict[str, list[float]] = field(default_factory=dict)

    @classmethod
    def begun(cls) -> "Training":
        """Return a training before its first round."""
        twin = Twin(SEED)
        return cls(twin, torch.optim.Adam(twin.parameters(), lr=TEACHING_RATE))

    @classmethod
    def resumed(cls, path: Path) -> "Training":
        """Return the training that ``save`` wrote."""
        kept = torch.load(path, weights_only=False)
        training = cls.begun()
        training.twin.load_state_dict(kept.pop("twin"))
        training.optimiser.load_state_dict(kept.pop("optimiser"))
        for name, value in kept.items():
            setattr(training, name, value)
        return training

    def save(self, path: Path) -> None:
        """Write a checkpoint; where it is stopped in between, the one before stays."""
        kept = {**vars(self), "twin": self.twin.state_dict(), "optimiser": self.optimiser.state_dict()}
        torch.save(kept, path.with_suffix(".new"))
        path.with_suffix(".new").replace(path)

    def trained(self) -> Trained:
        """Return the network as it is now, with the ranges of all that it has seen."""
        ranges = {name: self.ranges.get(name, np.zeros((2, len(names)))) for name, names in RANGES.items()}
        return Trained(self.twin.network(), ranges)

    def see(self, episodes: list[Episode]) -> None:
        """Widen the ranges to what was seen."""
        self.episodes += len(episodes)
        for step in chain.from_iterable(episode.steps for episode in episodes):
            rows = {"trial": step.trials, "node": step.nodes, "cluster": step.cluster[None]}
            if step.kind == "place":
                rows["pair"] = step.candidates[step.allowed > 0]
            if step.kind == "move":
                rows["move"] = step.candidates
            for name, found in rows.items():
                least, most = found.min(axis=0), found.max(axis=0)
                known = self.ranges.get(name)
                both = np.stack([least, most])
                self.ranges[name] = (
                    both if known is None else np.stack([np.minimum(known[0], least), np.maximum(known[1], most)])
                )


def main() -> None:
    """Train for as long as was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--cpu-hours", type=float, default=1.0, help="CPU hours in all, those of earlier calls included"
    )
    parser.add_argument("--processes", type=int, help="processes that simulate (default: one on each core)")
    parser.add_argument("--folder", type=Path, default=Path(".specon/kais"), help="where checkpoint and log are")
    parser.add_argument("--ship", action="store_true", help="write the best weights into the package")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    checkpoint = given.folder / "checkpoint.pt"
    training = Training.resumed(checkpoint) if checkpoint.exists() else Training.begun()
    with worker_pool(given.processes) as pool:
        each = Simulations(pool)
        while training.cpu_s < given.cpu_hours * HOUR:
            _round(training, each)
            training.save(checkpoint)
            with (given.folder / "log.jsonl").open("a") as log:
                log.write(json.dumps(training.log[-1]) + "\n")
    if given.ship:
        _ship(training)


def _round(training: Training, each: Simulations) -> None:
    began, number = time.process_time() + each.cpu_s, training.round
    chance = np.random.default_rng([SEED, number])
    trained = training.trained()
    told: dict[str, float] = {"round": number}
    if number < LESSONS:
        follow = 1.0 if number < LESSONS // 2 else 0.5
        seeds = range(number * TAUGHT_SWEEPS, (number + 1) * TAUGHT_SWEEPS)
        episodes = each(explored, [(trained, "training", seed, 0, follow) for seed in seeds])
        steps = list(chain.from_iterable(episode.steps for episode in episodes))
        for _ in range(3):
            hits = taught(training.twin, training.optimiser, steps, chance)
        told |= {f"{kind}_like_ahead": hit for kind, hit in hits.items()}
    else:
        _set_rate(training, RATE)
        first = LESSONS * TAUGHT_SWEEPS + (number - LESSONS) * SWEEPS
        tasks = [(trained, "training", first + sweep, draw, 0.0) for sweep in range(SWEEPS) for draw in range(DRAWS)]
        episodes = each(explored, tasks)
        gains = _gains(episodes)
        steps = list(chain.from_iterable(episode.steps for episode in episodes))
        improved(training.twin, training.optimiser, steps, gains, chance)
        told["mean_paid"] = float(np.mean([_paid(episode) for episode in episodes]))
    training.see(episodes)
    if (number + 1) % JUDGED_EVERY == 0 or number + 1 == LESSONS:
        told |= _judge(training, each)
    training.cpu_s += time.process_time() + each.cpu_s - began
    training.round += 1
    training.log.append({**told, "cpu_s": round(training.cpu_s, 1), "episodes": training.episodes})


def _set_rate(training: Training, rate: float) -> None:
    for group in training.optimiser.param_groups:
        group["lr"] = rate


def _paid(episode: Episode) -> float:
    return episode.to_come(float(episode.submitted.min()), episode.mean_completion)


def _gains(episodes: list[Episode]) -> Floats:
    """Return of each step what it saved from then on against the other runs of the same sweep; of spread 1 in all."""
    found: list[float] = []
    for begin in range(0, len(episodes), DRAWS):
        group = episodes[begin : begin + DRAWS]
        unit = float(np.mean([episode.mean_completion for episode in group]))
        for episode in group:
            others = [other for other in group if other is not episode]
            for step in episode.steps:
                usual = np.mean([other.to_come(step.now, unit) for other in others])
                found.append(float(usual) - episode.to_come(step.now, unit))
    gains = np.array(found)
    return np.asarray(gains / (gains.std() + 1e-6))


def _judge(training: Training, each: Simulations) -> Mapping[str, float]:
    """Compare the best choices with ``ahead`` and the default scheduler on the validation sweeps."""
    seeds = range(JUDGED)
    if not training.references:
        for name, policy in (("ahead", Ahead()), ("default", Default())):
            found = each(under, [(policy, "validation", seed) for seed in seeds])
            training.references[f"{name}_mean"] = [one.mean_completion for one in found]
            training.references[f"{name}_makespan"] = [one.makespan for one in found]
    trained = training.trained()
    ours = each(judged, [(trained, "validation", seed) for seed in seeds])
    told: dict[str, float] = {}
    for other in ("ahead", "default"):
        means, ends = training.references[f"{other}_mean"], training.references[f"{other}_makespan"]
        told[f"mean_to_{other}"] = float(np.mean([a.mean_completion / b for a, b in zip(ours, means, strict=True)]))
        told[f"makespan_to_{other}"] = float(np.mean([a.makespan / b for a, b in zip(ours, ends, strict=True)]))
    score = (told["mean_to_ahead"] + 0.5 * told["makespan_to_ahead"]) / 1.5
    if score < training.best.get("score", np.inf):
        training.best = {"score": score, "trained": trained, "told": told, "round": training.round}
    return {**told, "score": score}


def _ship(training: Training) -> None:
    """Write the best weights into the package, and the table of the training."""
    best: Trained = training.best["trained"]
    told = {
        "trained": f"{training.cpu_s / HOUR:.2f} CPU hours, {training.episodes} simulated sweeps",
        "round": str(training.best["round"]),
    }
    write(SHIPPED, Trained(best.network, training.trained().ranges), told)
    rows = [line for line in training.log if "score" in line]
    columns = (
        "round",
        "episodes",
        "cpu_s",
        "mean_to_ahead",
        "makespan_to_ahead",
        "mean_to_default",
        "makespan_to_default",
    )
    lines = [" | ".join(f"{row[name]:.3f}" if "_to_" in name else f"{row[name]:g}" for name in columns) for row in rows]
    head = (
        f"# How kais was trained\n\n<!-- Made by `python -m benchmarks.train_kais --ship`. -->\n\n"
        f"{told['trained']}; the shipped weights are of round {told['round']}. The columns from the fourth on are on "
        f"{JUDGED} validation sweeps. They are the mean completion time and the makespan under kais, as a multiple of "
        f"those under `ahead` and under `default`. Up to round {LESSONS}, `ahead` taught.\n\n"
    )
    table = f"| {' | '.join(columns)} |\n|{'---:|' * len(columns)}\n" + "".join(f"| {line} |\n" for line in lines)
    PAGE.write_text(head + table, encoding="utf-8")


if __name__ == "__main__":
    main()
