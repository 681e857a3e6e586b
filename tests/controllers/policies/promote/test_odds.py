"""The odds of a promise: what is measured of a sweep, the model that reads it, and the file that the model comes in."""

import math
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

from controllers.core.model import TrialId
from controllers.policies.kit.weights_file import MOST_BYTES, BadWeightsError
from controllers.policies.promote.curves import PARTS, Curve
from controllers.policies.promote.features import NAMES, features
from controllers.policies.promote.noise import MOST_KEPT, Noise, deviation
from controllers.policies.promote.odds import SHIPPED, OddsModel, odds_of, read, risk_left, write

LOSSES = st.floats(0.01, 100)
ENDS: list[Curve] = [(3.0, *(2.0,) * 24, *(1.2,) * 24, 1.0), (3.5, *(2.4,) * 48, 1.5)]
NEAR: Curve = (3.0, 3.0, 2.4, 2.1)
FAR: Curve = (4.0, 4.0, 4.0, 3.9)


def odds(
    curves: Mapping[str, Curve], ends: list[Curve], least: float = math.inf, noise: float = 0.0
) -> dict[str, float]:
    found = odds_of({TrialId(name): curve for name, curve in curves.items()}, ends, least, noise, read())
    return {str(name): one for name, one in found.items()}


@given(
    st.lists(st.lists(LOSSES, min_size=1, max_size=PARTS), min_size=1, max_size=8),
    st.lists(LOSSES, min_size=1),
    st.floats(0, 10),
)
def test_odds_are_probabilities_whatever_the_curves_are(
    unended: list[list[float]], ends: list[float], noise: float
) -> None:
    curves = {
        f"t{number}": tuple(min(losses[: place + 1]) for place in range(len(losses)))
        for number, losses in enumerate(unended)
    }
    found = list(odds(curves, [(end,) * PARTS for end in ends], noise=noise).values())
    assert all(0.0 <= one <= 1.0 for one in found)
    assert max(found) - 1e-9 <= risk_left(found) <= 1.0


@pytest.mark.parametrize(
    ("loss", "end", "noise"), [(-1.7e308, -1e300, 0.0), (1.0, 1.0, math.nan), (1.7e308, 1.0, 1e308)]
)
def test_values_too_large_to_compute_with_are_a_risk_and_no_reason_to_stop(
    loss: float, end: float, noise: float
) -> None:
    found = odds({"a": (loss,) * 4}, [(max(end, 1.0), *(end,) * (PARTS - 1))], noise=noise)
    assert math.isfinite(found["a"])
    assert loss >= end or found["a"] == 1.0


def test_features_are_worked_out_by_the_scale_of_the_sweep() -> None:
    """By hand: both completed trials gain nothing after 8 %, and one is far worse than the best."""
    curves = np.zeros((1, PARTS))
    curves[0, :4] = (4.0, 4.0, 3.0, 3.0)
    (found,) = features(curves, np.array([4]), np.array([(1.0,) * PARTS, (2.0,) * PARTS]), 1.0, 0.5)
    told = dict(zip(NAMES, found.tolist(), strict=True))
    scale = 2.0 - 1.0  # the median of 1, 2 and 3 is 2
    need = (3.0 - 1.0) / scale
    # Its first two parts brought nothing, so the next doublings bring as much as the last one did.
    short = need - 1.0 * math.log2(PARTS / 4) / scale
    expected = {
        "completed": 2.0,
        "empirical": 0.0,
        "octaves_short": short,
        "gap": need,
        "need": need,
        "need_by_most_gain": 20.0,
        "spread": math.log(1.0 / scale + 0.001),
        "most_gain": 0.0,
        "rank": 2 / 3,
        "part": 4 / PARTS,
        "noise": math.log(0.5 / scale + 0.001),
        "need_by_noise": need / 0.51,
        "late": 0.0,
        "alike": 0.0,
        "unended": 0.0,
        "close": 0.0,
        "unsettled": 1.0,
    }
    assert told == pytest.approx(expected)


@given(st.integers(0, 2**31), st.floats(0.1, 1000), st.floats(-100, 100))
def test_the_unit_of_a_metric_does_not_matter(seed: int, factor: float, shift: float) -> None:
    chance = np.random.default_rng(seed)
    curves = np.minimum.accumulate(chance.gamma(2.0, 1.0, (12, PARTS)), axis=1)
    parts, completed = chance.integers(1, PARTS, 8), curves[8:]
    reached = np.concatenate([curves[:8][np.arange(8), parts - 1], completed[:, -1]])
    assume(np.median(reached) - completed[:, -1].min() > 1e-3)  # else there is no scale, and a least one is taken
    plain = features(curves[:8], parts, completed, completed[:, -1].min(), 0.1)
    moved = factor * completed + shift
    other = features(factor * curves[:8] + shift, parts, moved, moved[:, -1].min(), 0.1 * factor)
    # Where two losses are as good as equal, rounding may order them either way.
    smooth = [
        number for number, name in enumerate(NAMES) if name not in {"rank", "empirical", "close", "octaves_short"}
    ]
    assert other[:, smooth] == pytest.approx(plain[:, smooth], rel=1e-4, abs=1e-4)


def test_of_two_trials_the_better_one_is_likelier_to_be_the_best() -> None:
    found = odds({"near": NEAR, "far": FAR}, ENDS)
    assert found["near"] > 2 * found["far"]


def test_a_trial_is_less_likely_to_be_the_best_where_one_whose_curve_nobody_knows_ended_better() -> None:
    assert odds({"near": NEAR}, ENDS[:1], least=0.2)["near"] < odds({"near": NEAR}, ENDS[:1])["near"]
    assert odds({"near": NEAR}, ENDS[:1], least=1.5) == odds({"near": NEAR}, ENDS[:1])


def test_nobody_is_judged_where_nobody_waits() -> None:
    assert odds({}, ENDS) == {}


def test_a_look_at_a_thousand_trials_takes_little_time() -> None:
    """A coarse bound: what it takes is measured in benchmarks/decisions_of_promote.py."""
    curves = {f"t{number}": (5.0, 4.0, 3.0 + number / 1000, 3.0) for number in range(1000)}
    odds(curves, ENDS)
    began = time.process_time()
    for _ in range(10):
        odds(curves, ENDS)
    assert (time.process_time() - began) / 10 < 0.1


def test_noise_is_measured_by_how_far_three_values_in_a_row_are_off_a_line() -> None:
    chance = np.random.default_rng(3)
    noise, trial = Noise(), TrialId("t")
    for part in range(2000):
        noise = noise.seen({("s", trial): 1.0 - part / 5000 + 0.05 * chance.normal()}, [trial])
    assert noise.of("s") == pytest.approx(0.05, rel=0.25)
    assert len(noise.bends["s"]) == MOST_KEPT
    assert noise.of("another") == 0.0


def test_a_line_has_no_noise_and_ended_trials_are_forgotten() -> None:
    noise, trial = Noise(), TrialId("t")
    for part in range(10):
        noise = noise.seen({("s", trial): 10.0 - part}, [trial])
    assert noise.of("s") == pytest.approx(0.0, abs=1e-12)
    assert noise.seen({}, []).values == {}
    assert deviation(()) == 0.0


def test_the_shipped_weights_are_whole() -> None:
    model = read()
    assert model.weights.shape == (2 * len(NAMES),)
    assert np.isfinite(model.weights).all()


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    model = OddsModel(np.arange(2 * len(NAMES), dtype=float), -1.5)
    write(tmp_path / "w.safetensors", model, {"families": "made:plain"})
    found = read(tmp_path / "w.safetensors")
    assert (found.weights.tolist(), found.bias) == (model.weights.tolist(), model.bias)


def _changed(path: Path, **values: np.ndarray) -> Path:
    """Write the shipped file with other numbers, and the checksum that it had."""
    with safe_open(SHIPPED, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
        save_file({**tensors, **values}, path, file.metadata())
    return path


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"bias": np.array([-9.0])}, "its checksum is"),
        ({"bias": np.array([0.0, 1.0])}, "of another network: bias"),
        ({"weights": np.zeros(2 * len(NAMES), np.float32)}, "of another network: weights"),
        ({"more": np.zeros(1)}, "of another network: more"),
    ],
)
def test_weights_that_were_tampered_with_are_refused(tmp_path: Path, values: dict[str, np.ndarray], why: str) -> None:
    with pytest.raises(BadWeightsError, match=why):
        read(_changed(tmp_path / "w.safetensors", **values))


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    write(path, OddsModel(np.full(2 * len(NAMES), np.nan), 0.0), {})
    with pytest.raises(BadWeightsError, match="not all of its numbers are finite"):
        read(path)


@pytest.mark.parametrize("content", [b"", b"no weights", b"x" * (MOST_BYTES + 1)], ids=["empty", "text", "too large"])
def test_what_is_no_file_of_weights_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(content)
    with pytest.raises(BadWeightsError, match=r"w\.safetensors"):
        read(path)
