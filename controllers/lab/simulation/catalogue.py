"""The thesis's training jobs (Tables 6.1 and 6.3): learning curve, length alone on a node, and cores they can use.

What is published is used as it is. Of the lengths only F1's follow from the thesis; the others were never published,
and are calibrated on the *default* column of its results alone (``python -m benchmarks.calibrate_lengths``).
"""

from dataclasses import dataclass, replace

from controllers.lab.simulation.curves import BI_RNN, GRU, VAE, Curve

NODE_CORES = 16.0
"""Two 8-core processors on the SpeCon testbed's workers (ch. 6.2.1), 16 threads on FlowCon's."""


@dataclass(frozen=True, slots=True)
class Job:
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
    Job("vae", "p", VAE_P_S, VAE),
    Job("vae", "t", FLOWCON_OTHER_S, VAE),
    Job("mnist", "p", MNIST_P_S, MNIST),
    Job("mnist", "t", MNIST_T_S, MNIST),
    Job("lstm-cfc", "t", FLOWCON_OTHER_S, GRU, LSTM_CFC_CORES),
    Job("lstm-crf", "p", FLOWCON_OTHER_S, GRU),
    Job("bi-rnn", "t", FLOWCON_OTHER_S, BI_RNN),
    Job("gru", "t", FLOWCON_OTHER_S, GRU),
)
"""Table 6.1."""

SPECON_CORES = 0.8 * NODE_CORES
"""Cores that each of SpeCon's jobs can use: the thesis's "usage tops at around 80 %" (on Fig. 6.23). Of 12 to 16 cores,
12 and 12.8 come nearest to S1's default mean and makespan together."""
SPECON_VAE_S = 220.2
"""Alone: calibrated on S1's default mean."""
_LADDER = (("bi-rnn", BI_RNN), ("rnn", BI_RNN), ("vae", VAE), ("dynamic-rnn", BI_RNN), ("gru", GRU))


def specon_vae(lone_s: float = SPECON_VAE_S) -> Job:
    """Return VAE on PyTorch, the one job of S1 to S3."""
    return Job("vae", "p", lone_s, VAE, SPECON_CORES)


def specon_jobs(middle_s: float, spread: float) -> tuple[Job, ...]:
    """Return the jobs of Table 6.3 with lengths from ``middle_s / spread`` to ``middle_s * spread``.

    They rise evenly in logarithm. Each experiment drew its jobs once, and nothing is published of their lengths: both
    numbers are calibrated on its default mean and makespan. That the models come in this order is an assumption.
    """
    rungs = [(model, platform, curve) for model, curve in _LADDER for platform in "pt"]
    return tuple(
        Job(model, platform, middle_s * spread ** (2 * rung / (len(rungs) - 1) - 1), curve, SPECON_CORES)
        for rung, (model, platform, curve) in enumerate(rungs)
    )


def named(jobs: tuple[Job, ...], *names: str) -> tuple[Job, ...]:
    """Return the jobs of these names, in their order."""
    known = {job.name: job for job in jobs}
    return tuple(known[name] for name in names)
