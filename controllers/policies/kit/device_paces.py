"""How fast trials train that hold devices: by the clock, for each model of device and number of trials that share one.

What a device does shows in no CPU second: some programs spin while they wait for it, others sleep. So the seconds of a
step count, without those for which the trial waited for a CPU. Pure.

Devices of one model are as fast as each other. How fast those of one model are beside another's is told by trials that
were on both, and by what trials of like hyperparameters take on each. Until either tells anything, all are taken for
equally fast. Where one device is advertised as several, those that take turns on it slow each other as soon as together
they want more than all of its time: which part each wants is told by trials that were seen beside unlike numbers of
others. Both rest on the newest trials only, so that what no longer holds is forgotten.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from controllers.core.devices import Devices
from controllers.core.model import Node, Parameters
from controllers.policies.kit.reports import Report, waited_between
from controllers.policies.kit.scaling import NEWEST
from controllers.policies.kit.work_by_parameters import LEAST_SPREAD, MOST_EXAMPLES, law_of, log_of

LEAST_STEP_S: Final = 1e-9
MOST_STEP_S: Final = 1e12
KEPT_PACES: Final = 8
"""Paces of a trial, each under conditions of its own, the newest."""
DEVICE_MODEL: Final = " device model"
"""The name under which a law sees the model: no parameter can have it, since theirs do not begin with a space."""
EQUAL: Final = 0.5
"""How far the logarithms of two models' speeds lie apart, as a standard deviation, before anything is known of them."""
OWN_SPREAD: Final = 0.15
"""Error of the logarithm of a ratio of speeds by one trial that was on both."""
DIGITS: Final = 2
"""Decimals of logarithms that laws see: what was seen a moment ago asks for the same law again."""
SHARES: Final = tuple(part / 20 for part in range(1, 21))
"""Parts of a device's time that a trial may want."""
TOLD_APART: Final = 0.05
"""Two shares explain what was measured equally well if their errors (means of logarithms) are so near."""
UNLIKE: Final = 1.1
"""A model is slower than another if a step takes so many times as long: estimates are no better."""


@dataclass(frozen=True, slots=True)
class DevicePace:
    """Seconds that a step took on a ``model`` with ``sharing`` trials to each device, when it was last seen ``at``."""

    model: str
    sharing: float
    seconds: float
    at: float


@dataclass(frozen=True, slots=True)
class Seen:
    """What a trial told: its parameters, and its paces, the newest last."""

    parameters: Parameters
    paces: tuple[DevicePace, ...]


@dataclass(frozen=True, slots=True)
class DeviceSpeeds:
    """What the trials of a sweep tell of devices.

    ``slower`` says how many times as long as on the fastest known model a step takes on each, ``told_by`` how many
    trials on both that rests on, 0 where parameters alone tell. ``use`` is the part of a device's time that a trial
    wants, None while nobody was seen beside unlike numbers of others. ``most_seen`` is the greatest number of trials to
    a device beside which a pace was measured. ``at`` is when the newest of all was, None before there is any.
    """

    slower: Mapping[str, float] = field(default_factory=dict)
    told_by: Mapping[str, int] = field(default_factory=dict)
    use: float | None = None
    most_seen: float = 0.0
    at: float | None = None

    @property
    def unlike(self) -> bool:
        """Whether some model is known to be clearly slower than another."""
        return any(times > UNLIKE for times in self.slower.values())

    def seconds(self, model: str, sharing: float) -> float:
        """Return what a second alone on a device of the fastest model takes on ``model``, shared by so many."""
        return self.slower.get(model, 1.0) * self._by_sharing(sharing)

    def alone(self, paces: Sequence[DevicePace]) -> float | None:
        """Return the seconds of a step alone on a device of the fastest model, by the newest of a trial's ``paces``."""
        if not paces:
            return None
        newest = paces[-1]
        return newest.seconds / self.seconds(newest.model, newest.sharing)

    @property
    def worth_sharing(self) -> int:
        """The greatest number of trials for which sharing a device gets more done than turns would; one at least.

        It is at most one more than was seen: only what is tried tells.
        """
        if self.use is None:
            return 1
        return max(1, min(math.ceil(self.most_seen) + 1, math.floor(1 / self.use + 1 / 2)))

    def _by_sharing(self, sharing: float) -> float:
        return max(1.0, sharing * (1.0 if self.use is None else self.use))


def model_of(node: Node) -> str:
    """Return the model of a node's devices; a node is a model of its own where nobody tells."""
    return node.device_model or str(node.name)


def shares_held(devices: Devices, replicas: Devices) -> int:
    """Return how many of the ``devices`` that a worker holds are replicas of shared ones.

    Devices of other kinds, such as network cards, are held beside them and shared with nobody.
    """
    return sum(count for kind, count in devices.counts if replicas.count(kind))


def sharing_on(node: Node, held: int) -> float:
    """Return how many trials share each of a node's devices on average, where so many replicas of these are held."""
    devices = devices_to_share(node)
    return max(1.0, held / devices) if devices else 1.0


def devices_to_share(node: Node) -> float:
    """Return how many devices of a node may be shared, each counted once however often it is advertised."""
    return sum(node.devices.count(kind) / times for kind, times in node.replicas.counts)


def with_pace(
    paces: tuple[DevicePace, ...], last: Report, report: Report, model: str, sharing: float
) -> tuple[DevicePace, ...]:
    """Return a trial's ``paces`` with that between two of its reports, the newest pace last."""
    steps, passed = report.step - last.step, report.at - last.at
    if steps < 1 or passed <= 0:
        return paces
    seconds = min(max(passed * _with_a_cpu(last, report) / steps, LEAST_STEP_S), MOST_STEP_S)
    before = next((pace for pace in paces if (pace.model, pace.sharing) == (model, sharing)), None)
    if before is not None:
        # As logarithms, so that one step that took very long is not all that counts.
        seconds = math.exp((1 - NEWEST) * math.log(before.seconds) + NEWEST * math.log(seconds))
    others = tuple(pace for pace in paces if pace is not before)
    return (*others, DevicePace(model, sharing, seconds, report.at))[-KEPT_PACES:]


def _with_a_cpu(last: Report, report: Report) -> float:
    """Return the part of the time between two reports in which a trial did not wait for a CPU."""
    waited = waited_between(last, report) or 0.0
    used = max(0.0, report.core_seconds - last.core_seconds) / (report.at - last.at)
    # Of so many threads, which all train, that many wait on average.
    return max(LEAST_SPREAD, 1 - waited / max(1.0, used + waited))


def device_speeds(seen: Iterable[Seen]) -> DeviceSpeeds:
    """Return what trials tell of the models of devices, and of sharing them; the newest count."""
    told = sorted((trial for trial in seen if trial.paces), key=lambda trial: trial.paces[-1].at)
    return _device_speeds(tuple(told[-MOST_EXAMPLES:])) if told else DeviceSpeeds()


@lru_cache(maxsize=32)
def _device_speeds(seen: tuple[Seen, ...]) -> DeviceSpeeds:
    use = _use(seen)
    slowed = DeviceSpeeds(use=use)
    paces = [
        {pace.model: math.log(pace.seconds / slowed.seconds("", pace.sharing)) for pace in trial.paces}
        for trial in seen
    ]
    counts = {model: sum(model in on for on in paces) for model in sorted({model for on in paces for model in on})}
    base = max(counts, key=lambda model: (counts[model], model))
    by_law, spread = _by_parameters(seen, slowed)
    apart, told_by = {base: 0.0}, {base: counts[base]}
    for model, count in counts.items():
        if model != base:
            own = [on[model] - on[base] for on in paces if model in on and base in on]
            weights = [(0.0, 1 / EQUAL**2), (statistics.fmean(own or (0.0,)), len(own) / OWN_SPREAD**2)]
            if model in by_law and base in by_law:
                between = by_law[model] - by_law[base]
                weights.append((between, 1 / (spread**2 * (1 / count + 1 / counts[base]))))
            apart[model] = sum(value * weight for value, weight in weights) / sum(weight for _, weight in weights)
            told_by[model] = len(own)
    fastest = min(apart.values())
    newest = [pace for trial in seen for pace in trial.paces]
    return DeviceSpeeds(
        {model: math.exp(min(value - fastest, math.log(MOST_STEP_S))) for model, value in apart.items()},
        told_by,
        use,
        max(pace.sharing for pace in newest),
        max(pace.at for pace in newest),
    )


def _by_parameters(seen: Sequence[Seen], slowed: DeviceSpeeds) -> tuple[dict[str, float], float]:
    """Return what a step takes on each model by the parameters of trials there, as logarithms, and their spread.

    Empty where a law sees no difference between models.
    """
    if len({trial.paces[-1].model for trial in seen}) == 1:
        return {}, 1.0
    examples = [
        (
            (*trial.parameters, (DEVICE_MODEL, trial.paces[-1].model)),
            round(log_of(trial.paces[-1].seconds / slowed.seconds("", trial.paces[-1].sharing)), DIGITS),
        )
        for trial in seen
    ]
    law = law_of(examples)
    if law is None or not any(term.column.name == DEVICE_MODEL for term in law.terms):
        return {}, 1.0
    like, models = examples[-1][0][:-1], {str(parameters[-1][1]) for parameters, _ in examples}
    return {model: law.of((*like, (DEVICE_MODEL, model)))[0] for model in sorted(models)}, law.spread


def _use(seen: Sequence[Seen]) -> float | None:
    """Return the least part of a device's time which explains how trials slow each other that share one.

    Only where all devices of a node are shared by as many is it known who is beside how many others.
    """
    pairs: list[tuple[float, float, float]] = []
    for trial in seen:
        for model in sorted({pace.model for pace in trial.paces}):
            even = (pace for pace in trial.paces if pace.model == model and pace.sharing.is_integer())
            line = sorted(even, key=lambda pace: pace.sharing)
            pairs += [(line[0].sharing, pace.sharing, math.log(pace.seconds / line[0].seconds)) for pace in line[1:]]
    if not pairs:
        return None
    errors = {part: _error(part, pairs) for part in SHARES}
    least = min(errors.values())
    return min(part for part, error in errors.items() if error <= least + TOLD_APART)


def _error(part: float, pairs: Sequence[tuple[float, float, float]]) -> float:
    """Return the mean error of ``pairs``, if each trial wants ``part`` of a device's time.

    Errors count as they are, not by their squares: devices of a node may be shared unevenly, and nothing tells.
    """
    expected = (math.log(max(1.0, part * more) / max(1.0, part * fewer)) for fewer, more, _ in pairs)
    return statistics.fmean(abs(found - one) for one, (_, _, found) in zip(expected, pairs, strict=True))
