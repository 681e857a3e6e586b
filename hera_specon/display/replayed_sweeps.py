"""What is said of a replay of several past sweeps: the makespan of each, and how often a better model was missed."""

from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from controllers.lab.simulation.past_sweeps.over_sweeps import OverSweeps, Rate, SweepMakespan
from hera_specon import formatting
from hera_specon.replay.several import ReplayedSweeps


def replayed_sweeps_view(replayed: ReplayedSweeps) -> RenderableType:
    """Return everything that is to be said about a replay of several sweeps."""
    ending = [policy for policy in replayed.policies if policy.missed is not None]
    return Group(
        Text(f"{len(replayed.sweeps)} past sweeps, each simulated with {replayed.seeds} seeds"),
        Text("· what is assumed of each: specon replay SWEEP alone, or --json", style="dim"),
        *(Text(f"· left out: {told}", style="dim") for told in replayed.left_out),
        _makespans(replayed),
        *([_rates(ending)] if ending else []),
        *(Text(told) for told in rates_told(replayed)),
    )


def rates_told(replayed: ReplayedSweeps) -> Iterator[str]:
    """Yield for each policy that ended trials early how often a better model was missed, beside its promise."""
    for policy in replayed.policies:
        beyond = policy.missed_beyond_noise
        if beyond is None:
            continue
        told = (
            f"{policy.policy} missed a model that is better by more than 1 % and by more than noise in "
            f"{_count(beyond)} of {beyond.sweeps} sweeps: {_range(beyond)}"
        )
        yield f"{told}{'.' if policy.promise is None else f'; {_verdict(policy.promise, beyond)}.'}"


def _verdict(promise: float, rate: Rate) -> str:
    promised = f"{100 * promise:.3g} %"
    if rate.low > promise:
        return f"it promises {promised}, which these sweeps contradict"
    if rate.high <= promise:
        return f"it promises {promised}, and keeps it here"
    return f"it promises {promised}, and {rate.sweeps} sweeps are too few to tell whether it keeps that"


def _makespans(replayed: ReplayedSweeps) -> Table:
    table = _table("Makespan (mean of the seeds, and the change against the first policy)")
    table.add_column("sweep", overflow="fold")
    table.add_column("trials", justify="right")
    table.add_column("error of the simulation", justify="right")
    for policy in replayed.policies:
        table.add_column(Text(policy.policy), justify="right", overflow="fold")
    first, *others = replayed.policies
    for number, sweep in enumerate(replayed.sweeps):
        table.add_row(
            Text(formatting.printable(sweep.name)),
            str(sweep.trials),
            formatting.DASH if sweep.off is None else f"{sweep.off:+.1%}",
            formatting.seconds(first.makespans[number].seconds.mean),
            *(_changed(policy.makespans[number]) for policy in others),
        )
    together = (formatting.change(policy.ratio) for policy in others)
    table.add_row("all (geometric mean)", "", "", formatting.DASH, *together)
    return table


def _rates(policies: list[OverSweeps]) -> Table:
    table = _table("Sweeps in which a better model was missed (95 %, by Wilson)")
    table.add_column("policy", overflow="fold")
    for title in ("promised", "more than 1 % better", "and by more than noise"):
        table.add_column(title, justify="right")
    for policy in policies:
        promised = formatting.DASH if policy.promise is None else f"{100 * policy.promise:.3g} %"
        rates = (policy.missed, policy.missed_beyond_noise)
        table.add_row(Text(policy.policy), promised, *(formatting.DASH if of is None else _rate(of) for of in rates))
    return table


def _rate(rate: Rate) -> str:
    return f"{_count(rate)} of {rate.sweeps}: {_range(rate)}"


def _range(rate: Rate) -> str:
    return f"{100 * rate.share:.0f} % ({100 * rate.low:.0f} to {100 * rate.high:.0f})"


def _count(rate: Rate) -> str:
    return f"{rate.count:.1f}".removesuffix(".0")


def _changed(makespan: SweepMakespan) -> str:
    return f"{formatting.seconds(makespan.seconds.mean)} ({formatting.change(makespan.ratio.mean)})"


def _table(title: str) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD)
    table.title_justify = "left"
    return table
