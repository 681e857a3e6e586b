"""The same network in torch, how it is taught what ``ahead`` would choose, and how it learns from what came of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.train_kais.episodes import Step
from controllers.policies.kais.grid import GRID, MOST_WEIGHT, Floats
from controllers.policies.kais.network import BIASES, SHAPES, PolicyNetwork
from controllers.policies.kais.scene import USUAL

BATCH: Final = 256
NEVER: Final = -1e9
FIRST_WAYS: Final = (-1.0, -0.5, 0.0, 2.5, -2.0)
"""Scores of the ways to share before any training: most for the shortest, as the theory has it (Schrage 1968)."""
RARE: Final = 3.0
"""How much more a move counts in a lesson than a stay: there are seven times as many stays."""
STAYS: Final = -2.0
"""Score of a move before any training, against 0 of staying."""


class Twin(nn.Module):
    """The network of ``controllers.policies.kais.network`` on batches of graphs, which are filled up to one size."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        chance = torch.Generator().manual_seed(seed)
        self.matrices = nn.ParameterDict(
            {
                name: nn.Parameter(torch.randn(shape, generator=chance) * (1.4 / shape[0] ** 0.5))
                for name, shape in SHAPES.items()
            }
        )
        self.biases = nn.ParameterDict({name: nn.Parameter(torch.zeros(length)) for name, length in BIASES.items()})
        with torch.no_grad():
            for name in ("place_score", "move_score", "share_score"):
                self.matrices[name] *= 0.1
            self.biases["share_score"] += torch.tensor(FIRST_WAYS)
            self.biases["move_score"] += STAYS

    def network(self) -> PolicyNetwork:
        """Return the network as the policy has it."""
        return PolicyNetwork(
            {name: _on_grid(values) for name, values in self.matrices.items()},
            {name: _on_grid(values) for name, values in self.biases.items()},
        )

    def logits(self, steps: Sequence[Step]) -> Tensor:
        """Return the scores of all that could be chosen at each of ``steps``, which are of one kind.

        Steps x choices; for shares, nodes x ways, step by step.
        """
        trials, nodes = self._embedded(steps)
        weights, kind = self.matrices, steps[0].kind
        if kind == "share":
            chosen = torch.cat([nodes[row, torch.from_numpy(step.first)] for row, step in enumerate(steps)])
            ways: Tensor = self._layer("share_node", chosen) @ weights["share_score"] + self.biases["share_score"]
            return ways
        if kind == "place":
            mine = trials[torch.arange(len(steps)), torch.tensor([int(step.first[0]) for step in steps])]
            pairs = _filled([step.candidates for step in steps])
            hidden = pairs @ weights["place_pair"] + self.biases["place_pair"] + nodes @ weights["place_node"]
            hidden = torch.relu(hidden + (mine @ weights["place_trial"])[:, None])
            allowed = _filled([step.allowed for step in steps]) > 0
            scores: Tensor = (hidden @ weights["place_score"])[..., 0]
            return scores.masked_fill(~allowed, NEVER)
        return self._moves(steps, trials, nodes)

    def _moves(self, steps: Sequence[Step], trials: Tensor, nodes: Tensor) -> Tensor:
        weights = self.matrices
        rows = torch.arange(len(steps))[:, None]
        who, where = (_filled([getattr(step, name) for step in steps]).long() for name in ("first", "second"))
        source = _filled([step.at[step.first] for step in steps]).long()
        hidden = _filled([step.candidates for step in steps]) @ weights["move_pair"] + self.biases["move_pair"]
        hidden = hidden + trials[rows, who] @ weights["move_trial"] + nodes[rows, source] @ weights["move_source"]
        hidden = torch.relu(hidden + nodes[rows, where] @ weights["move_target"])
        scores = (hidden @ weights["move_score"] + self.biases["move_score"])[..., 0]
        found = torch.full((len(steps), scores.shape[1] + 1), NEVER)
        for row, step in enumerate(steps):
            count = len(step.candidates)
            found[row, :count] = scores[row, :count]
            found[row, count] = 0.0
        return found

    def _embedded(self, steps: Sequence[Step]) -> tuple[Tensor, Tensor]:
        trial_rows, node_rows = (_filled([getattr(step, name) for step in steps]) for name in ("trials", "nodes"))
        cluster = torch.from_numpy(np.stack([step.cluster for step in steps])).float()
        there = torch.zeros(len(steps), trial_rows.shape[1], node_rows.shape[1])
        real = torch.zeros(len(steps), node_rows.shape[1], 1)
        for row, step in enumerate(steps):
            placed = np.flatnonzero(step.at >= 0)
            there[row, placed, step.at[placed]] = 1.0
            real[row, : len(step.nodes)] = 1.0
        counts = there.sum(1).clamp(min=1.0)[..., None]
        from_trials = there.transpose(1, 2)
        trials = self._layer("trial", trial_rows)
        gathered = from_trials @ trials
        told = cluster[:, None].expand(-1, node_rows.shape[1], -1)
        nodes = self._layer("node", torch.cat([node_rows, told, gathered / USUAL, gathered / counts], -1))
        picture = ((nodes * real).sum(1) / real.sum(1))[:, None]
        heard = torch.cat([trials, there @ nodes, picture.expand(-1, trials.shape[1], -1)], -1)
        again = self._layer("trial_again", heard)
        mean = (from_trials @ again) / counts
        both = torch.cat([nodes, mean, picture.expand(-1, nodes.shape[1], -1)], -1)
        return again, self._layer("node_again", both)

    def _layer(self, name: str, inputs: Tensor) -> Tensor:
        return torch.relu(inputs @ self.matrices[name] + self.biases[name])

    @torch.no_grad()
    def bound(self) -> None:
        """Keep every weight within what the file can hold."""
        for parameter in self.parameters():
            parameter.clamp_(-MOST_WEIGHT, MOST_WEIGHT)


def batches(steps: Sequence[Step], chance: np.random.Generator) -> Iterator[list[int]]:
    """Yield the numbers of steps of one kind and about one size together, in an order by chance."""
    found = []
    for kind in ("place", "move", "share"):
        of_kind = [number for number, step in enumerate(steps) if step.kind == kind]
        of_kind.sort(key=lambda number: (len(steps[number].nodes), len(steps[number].trials)))
        found += [of_kind[begin : begin + BATCH] for begin in range(0, len(of_kind), BATCH)]
    chance.shuffle(found)
    yield from found


def taught(
    twin: Twin, optimiser: torch.optim.Optimizer, steps: Sequence[Step], chance: np.random.Generator
) -> Mapping[str, float]:
    """Learn the choices of ``ahead`` once; return in which part of the places and moves the first choice was its."""
    hits: dict[str, list[float]] = {"place": [], "move": []}
    known = [step for step in steps if step.taught >= 0 and step.kind != "share"]
    for numbers in batches(known, chance):
        some = [known[number] for number in numbers]
        logits, wanted = twin.logits(some), torch.tensor([step.taught for step in some])
        moves = torch.tensor([step.kind == "move" and step.taught < len(step.candidates) for step in some])
        losses = nn.functional.cross_entropy(logits, wanted, reduction="none") * (1.0 + (RARE - 1.0) * moves)
        _take(twin, optimiser, losses.mean())
        hits[some[0].kind] += (logits.argmax(1) == wanted).float().tolist()
    return {kind: float(np.mean(found)) if found else 0.0 for kind, found in hits.items()}


def chosen_logs(twin: Twin, steps: Sequence[Step]) -> tuple[Tensor, Tensor]:
    """Return for each step the logarithm of its choice's probability, and the entropy of what could be chosen.

    Of shares, those of the nodes together: the sum of the logarithms, and the mean of the entropies.
    """
    logs = torch.log_softmax(twin.logits(steps), -1)
    entropy = -(logs.exp() * logs.clamp(min=-30.0)).sum(-1)
    if steps[0].kind != "share":
        picked = torch.tensor([int(step.chosen[0]) for step in steps])
        return logs[torch.arange(len(steps)), picked], entropy
    picked = torch.from_numpy(np.concatenate([step.chosen for step in steps]))
    owner = torch.tensor([row for row, step in enumerate(steps) for _ in step.chosen])
    each = logs[torch.arange(len(picked)), picked]
    zeros = torch.zeros(len(steps))
    counts = zeros.index_add(0, owner, torch.ones(len(picked)))
    return zeros.index_add(0, owner, each), zeros.index_add(0, owner, entropy) / counts


def improved(  # noqa: PLR0913 - the settings of PPO
    twin: Twin,
    optimiser: torch.optim.Optimizer,
    steps: Sequence[Step],
    gains: Floats,
    chance: np.random.Generator,
    *,
    epochs: int = 2,
    clip: float = 0.2,
    entropy_weight: float = 0.003,
) -> None:
    """Make choices with ``gains`` above 0 likelier, others less so: PPO's clipped objective (Schulman et al. 2017)."""
    groups = list(batches(steps, chance))
    with torch.no_grad():
        before = [chosen_logs(twin, [steps[number] for number in numbers])[0] for numbers in groups]
    for _ in range(epochs):
        for numbers, old in zip(groups, before, strict=True):
            logs, entropy = chosen_logs(twin, [steps[number] for number in numbers])
            ratio = (logs - old).clamp(-5.0, 5.0).exp()
            gain = torch.from_numpy(gains[numbers]).float()
            surrogate = torch.minimum(ratio * gain, ratio.clamp(1 - clip, 1 + clip) * gain).mean()
            _take(twin, optimiser, -surrogate - entropy_weight * entropy.mean())


def _take(twin: Twin, optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]  # torch has not annotated it
    nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
    optimiser.step()
    twin.bound()


def _filled(arrays: Sequence[np.ndarray]) -> Tensor:
    """Return ``arrays`` in one tensor, each filled up with zeros."""
    shape = tuple(max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True))
    found = np.zeros((len(arrays), *shape), np.float32)
    for row, array in enumerate(arrays):
        found[row][tuple(slice(size) for size in array.shape)] = array
    return torch.from_numpy(found)


def _on_grid(values: Tensor) -> Floats:
    return np.asarray(np.rint(values.detach().numpy().astype(np.float64) * GRID) / GRID)
