"""Time to target, and trials whose steps take as long as they were asked to, under several policies and many seeds.

``python -m benchmarks.targets --seeds 30`` prints a line for each, with 95 % confidence intervals.
"""

import argparse

from controllers.policies.registry import parse_policy
from controllers.simulation.statistics import Estimate, estimate
from controllers.simulation.target_experiments import TRIALS, satisfied_trials, time_to_target


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    seeds = range(parser.parse_args().seeds)
    print("mean time to target")
    times = {
        name: [time_to_target(parse_policy(name), seed) for seed in seeds] for name in ("default", "flowcon", "tradl")
    }
    for name, found in times.items():
        change = estimate([after / before - 1 for before, after in zip(times["default"], found, strict=True)])
        print(f"  {name:10} {_told(estimate(found), '{:.1f}')} s, {_told(change, '{:+.1%}')}")
    print(f"of {TRIALS} trials, those with the time per step that they asked for; with that or a shorter one")
    for name in ("default", "dqoes"):
        pairs = [satisfied_trials(parse_policy(name), seed) for seed in seeds]
        exact, enough = (estimate([float(pair[place]) for pair in pairs]) for place in (0, 1))
        print(f"  {name:10} {_told(exact, '{:.2f}')}; {_told(enough, '{:.2f}')}")


def _told(found: Estimate, form: str) -> str:
    reach = found.half_width
    told = form.format(found.mean)
    return told if reach is None else f"{told} ± {form.format(reach).removeprefix('+')}"


if __name__ == "__main__":
    main()
