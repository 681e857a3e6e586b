"""The thesis's training jobs (Tables 6.1 and 6.3): learning curve, length alone on a node, and cores they can use.

The curves are of parametric form, calibrated to what the thesis tells of its models (Fig. 3.1).

What is published is used as it is. Of the lengths only F1's follow from the thesis; the others were never published,
and are calibrated on the *default* column of its results alone (``python -m benchmarks.calibrate_lengths``).
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random

from controllers.worlds.simulated.errors import WorkloadError
from controllers.worlds.simulated.workload import CurvePoint


@dataclass(frozen=True)
class Curve:
    """The loss falls from ``first`` to ``last``; its reduction follows ``1 - exp(-(x / tau) ** shape)`` of Weibull.

    x is the part of a lone run's time, and the curve is scaled so that all of the reduction is there at x = 1.
    ``early`` is the part of the reduction that the first 20 % of the time bring, from which tau follows; ``shape``
    below 1 makes a long tail, above 1 a late and steep fall. ``noise`` is the standard deviation of a report, as a
    part of the whole reduction: an assumption, as the thesis shows smooth curves.
    """

    early: float
    shape: float = 1.0
    noise: float = 0.0
    first: float = 1.0
    last: float = 0.02

    def __post_init__(self) -> None:
        # Stretched without end, a curve becomes x ** shape: what the first part brings is always more than that.
        limits = {
            "shape": (0.0, math.inf),
            "early": (EARLY ** max(0.0, self.shape), 1.0),
            "noise": (-math.ulp(0.0), math.inf),
        }
        for name, (low, high) in limits.items():
            if not low < getattr(self, name) < high:
                message = f"a curve's {name} must be between {low:.4g} and {high:g}, not {getattr(self, name)}"
                raise WorkloadError(message)

    @cached_property
    def tau(self) -> float:
        """Part of the time after which a curve without end would have brought 63 % of its reduction."""
        low, high = 1e-3, 1e3
        while low > _LEAST_TAU and self._reached(EARLY, low) < self.early:
            low /= 10
        while high < 1 / _LEAST_TAU and self._reached(EARLY, high) > self.early:
            high *= 10
        while high - low > 1e-12 * high:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self._reached(EARLY, middle) > self.early else (low, middle)
        return low

    def reduction(self, part: float) -> float:
        """Return the part of the whole reduction (0 to 1) that is there after ``part`` (0 to 1) of the time."""
        return self._reached(part, self.tau)

    def reports(self, work_s: float, count: int, chance: Random) -> tuple[CurvePoint, ...]:
        """Return ``count`` reports, evenly spaced over ``work_s`` lone seconds, the last at the end."""
        span = self.first - self.last
        parts = [number / count for number in range(1, count + 1)]
        errors = [chance.gauss(0.0, self.noise) if self.noise else 0.0 for _ in parts]
        return tuple(
            CurvePoint(part * work_s, self.first - span * (self.reduction(part) + error))
            for part, error in zip(parts, errors, strict=True)
        )

    def _reached(self, part: float, tau: float) -> float:
        return math.expm1(-((part / tau) ** self.shape)) / math.expm1(-((1 / tau) ** self.shape))


_LEAST_TAU = 1e-12
"""No curve that a double can tell from a step is steeper."""
EARLY = 0.2
"""Part of the time for which the thesis tells the reduction."""
GRU_LATER = (0.27, 0.99)
"""GRU alone has a second point: 99 % of the reduction at 27 % of the time (ch. 3.2)."""

VAE = Curve(early=0.65)
BI_RNN = Curve(early=0.98)
GRU = Curve(early=0.90, shape=math.log(2) / math.log(GRU_LATER[0] / EARLY))
"""The shape that leads through both points: between them, ln(1 - reduction) doubles (from 10 % left to 1 %)."""

NODE_CORES = 16.0
"""Two 8-core processors on the SpeCon testbed's workers (ch. 6.2.1), 16 threads on FlowCon's."""


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """A kind of training job: ``lone_s`` seconds alone on a node, where it can use ``cores`` of it."""

    model: str
    platform: str
    lone_s: float
    curve: Curve
    cores: float = NODE_CORES

    @property
    def name(self) -> str:
        """Model and platform, as in ``vae-p``."""
        return f"{self.model}-{self.platform}"


VAE_P_S, MNIST_P_S, MNIST_T_S = 259.6, 106.2, 28.2
"""Alone, from F1's default run, in which trials share a node evenly (Fig. 6.6): MNIST-T runs for 84.7 s as one of
three (28.2 s); MNIST-P overlaps VAE for 240.5 s, of these 84.7 s as one of three and the rest as one of two (106.2 s);
VAE has all the rest of 394.0 s (259.6 s)."""
FLOWCON_OTHER_S = 163.0
"""Alone, each of the other jobs: calibrated on F4's default makespan; F3 and F5 check it."""
LSTM_CFC_CORES = 0.19 * NODE_CORES
"""It runs alone and uses 19 % of the node (ch. 6.1.4, on Fig. 6.9)."""
MNIST = replace(VAE, early=0.90)
"""Assumed: nothing is published of the curves of MNIST, LSTM and RNN but that they flatten like the others."""

FLOWCON_JOBS = (
    TrainingJob("vae", "p", VAE_P_S, VAE),
    TrainingJob("vae", "t", FLOWCON_OTHER_S, VAE),
    TrainingJob("mnist", "p", MNIST_P_S, MNIST),
    TrainingJob("mnist", "t", MNIST_T_S, MNIST),
    TrainingJob("lstm-cfc", "t", FLOWCON_OTHER_S, GRU, LSTM_CFC_CORES),
    TrainingJob("lstm-crf", "p", FLOWCON_OTHER_S, GRU),
    TrainingJob("bi-rnn", "t", FLOWCON_OTHER_S, BI_RNN),
    TrainingJob("gru", "t", FLOWCON_OTHER_S, GRU),
)
"""Table 6.1."""

_APPETITES = (1.0, 2.0, 4.0, 8.0, NODE_CORES)
STRESS_JOBS = tuple(TrainingJob("stress", f"{cores:g}", 200.0, VAE, cores) for cores in _APPETITES)
"""Trials of unlike appetite for cores: our own."""

SPECON_CORES = 0.8 * NODE_CORES
"""Cores that each of SpeCon's jobs can use: the thesis's "usage tops at around 80 %" (on Fig. 6.23). Of 12 to 16 cores,
12 and 12.8 come nearest to S1's default mean and makespan together."""
SPECON_VAE_S = 220.2
"""Alone: calibrated on S1's default mean."""
_LADDER = (("bi-rnn", BI_RNN), ("rnn", BI_RNN), ("vae", VAE), ("dynamic-rnn", BI_RNN), ("gru", GRU))


def specon_vae(lone_s: float = SPECON_VAE_S) -> TrainingJob:
    """Return VAE on PyTorch, the one job of S1 to S3."""
    return TrainingJob("vae", "p", lone_s, VAE, SPECON_CORES)


def specon_jobs(middle_s: float, spread: float) -> tuple[TrainingJob, ...]:
    """Return the jobs of Table 6.3 with lengths from ``middle_s / spread`` to ``middle_s * spread``.

    They rise evenly in logarithm. Each experiment drew its jobs once, and nothing is published of their lengths: both
    numbers are calibrated on its default mean and makespan. That the models come in this order is an assumption.
    """
    rungs = [(model, platform, curve) for model, curve in _LADDER for platform in "pt"]
    return tuple(
        TrainingJob(model, platform, middle_s * spread ** (2 * rung / (len(rungs) - 1) - 1), curve, SPECON_CORES)
        for rung, (model, platform, curve) in enumerate(rungs)
    )


def jobs_named(jobs: tuple[TrainingJob, ...], *names: str) -> tuple[TrainingJob, ...]:
    """Return the jobs of these names, in their order."""
    known = {job.name: job for job in jobs}
    return tuple(known[name] for name in names)
