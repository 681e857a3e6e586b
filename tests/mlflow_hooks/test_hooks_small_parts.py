"""Imports, batches, random states and thread counts."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_hooks import contract, interruption, threads
from mlflow_hooks.batches import batch_indices, batches_per_epoch
from mlflow_hooks.cpu_use import CpuMeter, WaitMeter
from mlflow_hooks.states import load_random_states, save_random_states


@pytest.mark.parametrize(
    "module",
    [
        "mlflow_hooks",
        "mlflow_hooks.batches",
        "mlflow_hooks.data_parallel",
        "mlflow_hooks.keras",
        "mlflow_hooks.pytorch",
        "mlflow_hooks.sklearn",
        "mlflow_hooks.tensorflow_gang",
        "mlflow_hooks.torch_gang",
    ],
)
def test_importing_the_hooks_imports_no_framework_no_tracker_and_no_numpy(module: str) -> None:
    heavy = {"torch", "tensorflow", "keras", "sklearn", "mlflow", "numpy"}
    script = f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("folder", "said"), [(None, "left at step 3"), ("/runs/t000", "")])
def test_a_container_says_why_it_ends_and_no_trial_speaks_for_the_container_around_a_whole_run(
    folder: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = tmp_path / "termination-log"
    monkeypatch.setattr(interruption, "_MESSAGE", message)
    monkeypatch.delenv(contract.ENV_TRIAL_FOLDER, raising=False)
    if folder is not None:
        monkeypatch.setenv(contract.ENV_TRIAL_FOLDER, folder)
    interruption.leave_message("nowhere to write it to")
    assert not message.exists()
    message.touch()
    interruption.leave_message("left at step 3")
    assert message.read_text() == said


@given(n=st.integers(1, 60), size=st.integers(1, 70), seed=st.integers(0, 2**40), epoch=st.integers(0, 5))
def test_the_batches_of_an_epoch_are_all_rows_once(n: int, size: int, seed: int, epoch: int) -> None:
    per_epoch = batches_per_epoch(n, size)
    batches = [batch_indices(n, size, seed, epoch * per_epoch + batch) for batch in range(per_epoch)]
    assert sorted(np.concatenate(batches)) == list(range(n))
    assert max(map(len, batches)) <= size


def test_epochs_and_seeds_differ_and_a_batch_depends_on_nothing_else() -> None:
    first = batch_indices(100, 100, 1, 0)
    assert first.tolist() != batch_indices(100, 100, 1, 1).tolist()
    assert first.tolist() != batch_indices(100, 100, 2, 0).tolist()
    expected = first.copy()
    first[:] = 0
    assert batch_indices(100, 100, 1, 0).tolist() == expected.tolist()


@pytest.mark.parametrize("arguments", [(0, 1, 0, 0), (1, 0, 0, 0), (1, 1, -1, 0), (1, 1, 0, -1)])
def test_sizes_that_make_no_sense_are_refused(arguments: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match=", ".join(map(str, arguments))):
        batch_indices(*arguments)


def test_the_random_states_of_python_and_numpy_come_back(tmp_path: Path) -> None:
    random.gauss(0, 1)
    np.random.standard_normal()  # noqa: NPY002 - the global generator is what is kept
    save_random_states(tmp_path)
    expected = (random.gauss(0, 1), np.random.standard_normal(3).tolist())  # noqa: NPY002 - see above
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - see above
    load_random_states(tmp_path)
    assert (random.gauss(0, 1), np.random.standard_normal(3).tolist()) == expected  # noqa: NPY002 - see above


def cgroups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, **files: str) -> None:
    for name, content in files.items():
        path = tmp_path / "cgroup" / name.replace("__", "/").replace("_max", ".max").replace("cfs", "cpu.cfs")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (tmp_path / "own").write_text(own)
    monkeypatch.setattr(threads, "_CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(threads, "_OWN_CGROUPS", tmp_path / "own")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)), raising=False)
    monkeypatch.delenv("SPECON_CPUS", raising=False)


def test_the_least_quota_on_the_way_up_counts_in_cgroup_v2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"a__b__cpu_max": "max 100000\n", "a__cpu_max": "250000 100000\n"}
    cgroups(tmp_path, monkeypatch, "0::/a/b\n", **files)
    assert (threads.cores(), threads.thread_count()) == (2.5, 2)


def test_the_quota_counts_in_cgroup_v1_and_seen_from_inside_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"cpu__cfs_quota_us": "350000", "cpu__cfs_period_us": "100000"}
    cgroups(tmp_path, monkeypatch, "4:cpu,cpuacct:/docker/host-only\n3:memory:/x\n", **files)
    assert threads.cores() == 3.5


@pytest.mark.parametrize(("share", "count"), [("0.3", 1), ("1.9", 1), ("3", 3), ("64", 8)])
def test_the_share_counts_up_to_the_affinity(
    share: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cgroups(tmp_path, monkeypatch, "0::/\n")
    monkeypatch.setenv("SPECON_CPUS", share)
    assert threads.thread_count() == count


@pytest.mark.pytorch
def test_pytorch_follows_the_share_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    cgroups(tmp_path, monkeypatch, "0::/\n")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    try:
        for share in ("2", "1"):
            monkeypatch.setenv("SPECON_CPUS", share)
            threads.follow_share()
            assert torch.get_num_threads() == int(share)
    finally:
        torch.set_num_threads(before)


def test_cpu_seconds_count_children_that_live_and_that_have_ended_once() -> None:
    meter = CpuMeter()
    before, really_before = meter.seconds(), sum(os.times()[:4])
    spin = "import time\nwhile time.process_time() < 0.5: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", spin], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        child.stdout.readline()
        time.sleep(1.1)
        alive = meter.seconds()
        child.communicate(b"\n")
    ended = meter.seconds()
    really = sum(os.times()[:4]) - really_before
    assert alive - before >= 0.4
    # Servers of other tests are children that live on; they idle meanwhile.
    assert alive <= ended <= before + really + 0.3


def test_a_thread_that_is_kept_from_running_is_told_as_waiting_and_one_that_sleeps_is_not() -> None:
    # Two that spin on the same CPU: each has half of it and waits for the other half.
    spin = (
        "import os, threading, time\n"
        "from mlflow_hooks.cpu_use import CpuMeter, WaitMeter\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "idle, used = WaitMeter(), CpuMeter()\n"
        "began, before, at_first = time.monotonic(), idle.seconds(), used.seconds()\n"
        "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
        "while time.monotonic() < began + 3: pass\n"
        "print(idle.seconds() - before, used.seconds() - at_first, time.monotonic() - began)\n"
    )
    command = [sys.executable, "-c", spin]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in "ab"]
    for one in both:
        waited, used, seconds = map(float, one.communicate()[0].split())
        assert waited > 0.2 * seconds
        assert waited + used == pytest.approx(seconds, rel=0.1)


def test_what_threads_waited_that_have_ended_still_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([{"a": 5 * 10**9, "b": 10**9}, {"a": 6 * 10**9}, {"a": 10**9}])
    monkeypatch.setattr("mlflow_hooks.cpu_use.waits_of", lambda _: next(looks).items())
    meter = WaitMeter()
    meter._look_at = -1e9
    told = []
    for _ in range(3):
        told.append(meter.seconds())
        meter._look_at = -1e9
    assert told == [pytest.approx(6.0), pytest.approx(7.0), pytest.approx(8.0)]


def test_where_nothing_counts_waits_none_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlflow_hooks.cpu_use.waits_of", lambda _: ())
    assert WaitMeter().seconds() is None
