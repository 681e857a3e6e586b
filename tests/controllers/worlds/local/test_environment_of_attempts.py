"""What an attempt finds in its environment: the user's own, and what this machine promises on top."""

import sys

import pytest

from controllers.worlds.local.environment import (
    common,
    compose_environment,
    inherit_environment,
    threads_told,
    without_proxy,
)
from mlflow_hooks import contract, threads
from mlflow_hooks.tracking_server import tracking_uri


def test_who_a_worker_of_another_job_is_tells_a_trial_nothing() -> None:
    given = {"RANK": "1", "MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": "x", "SPECON_TRIAL_ID": "t", "MLFLOW_RUN_ID": "r"}
    assert inherit_environment({**given, "HOME": "/home/me", "RANKING": "kept"}) == {
        "HOME": "/home/me",
        "RANKING": "kept",
    }


OF_LAUNCHERS = (
    *("SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID", "SLURM_STEP_GPUS", "SLURMD_NODENAME", "SRUN_DEBUG"),
    *("PBS_JOBID", "PBS_NODEFILE", "LSB_JOBID", "LSB_DJOB_RANKFILE", "JSM_NAMESPACE_RANK", "LS_JOBPID"),
    *("FLUX_TASK_RANK", "FLUX_JOB_SIZE", "RAY_JOB_ID", "RAY_RAYLET_PID", "TORCHELASTIC_RUN_ID", "PET_NNODES"),
    *("NODE_RANK", "OMPI_COMM_WORLD_NODE_RANK", "OMPI_MCA_ess_base_jobid", "PMI_RANK", "PMI_FD", "PMIX_RANK"),
    *("PMI2_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_RANK", "PALS_RANKID", "HOROVOD_RANK", "SGE_TASK_ID"),
    *("JAX_PROCESS_ID", "TF_CONFIG", "SPECON_ATTEMPT"),
)
ORDINARY = (
    *("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "TMPDIR", "SLURM_TMPDIR", "PBS_JOBDIR"),
    *("RAY_ADDRESS", "FLUX_URI", "OMPI_MCA_btl", "LS_COLORS", "HYDRA_FULL_ERROR", "SBATCH_ACCOUNT", "RANKS", "PBSX"),
    *("HOROVOD_FUSION_THRESHOLD", "NCCL_DEBUG", "JAX_PLATFORMS", "LSF_ENVDIR", "SLURM", "MLFLOW_TRACKING_URI"),
)


@pytest.mark.parametrize("name", OF_LAUNCHERS)
def test_what_an_outer_launcher_set_for_us_is_not_for_a_trial(name: str) -> None:
    assert inherit_environment({name: "1", "HOME": "/"}) == {"HOME": "/"}


@pytest.mark.parametrize("name", ORDINARY)
def test_devices_folders_and_settings_are_for_a_trial_inside_an_allocation_too(name: str) -> None:
    assert inherit_environment({name: "1"}) == {name: "1"}


def test_a_variable_of_a_launcher_is_let_through_by_its_name_or_its_beginning() -> None:
    given = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "2", "PMI_RANK": "1", "SPECON_TRIAL_ID": "t"}
    assert inherit_environment(given, ("SLURM_JOB_ID",)) == {"SLURM_JOB_ID": "7"}
    assert inherit_environment(given, ("SLURM_*", "SPECON_*")) == {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "2"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "127.0.0.1,localhost"),
        ({"NO_PROXY": "a.example, b"}, "a.example,b,127.0.0.1,localhost"),
        ({"no_proxy": "localhost", "NO_PROXY": "ignored"}, "localhost,127.0.0.1"),
    ],
)
def test_a_proxy_does_not_stand_before_this_machine(given: dict[str, str], expected: str) -> None:
    assert without_proxy(given) == {"no_proxy": expected, "NO_PROXY": expected}


@pytest.mark.parametrize(
    ("cpus", "part", "threads"),
    [(0.4, 0.4, "1"), (1.0, 1.0, "1"), (16.0, 3.9, "3"), (16.0, 0.5, "1"), (2.0, 16.0, "2")],
)
def test_libraries_compute_with_as_many_threads_as_the_trials_part_of_the_cores(
    cpus: float, part: float, threads: str
) -> None:
    env = compose_environment({}, {}, {}, cpus, part)
    assert (env["OMP_NUM_THREADS"], env[contract.ENV_THREADS]) == (threads, threads)
    assert env[contract.ENV_CPUS] == f"{cpus:g}"


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"])
def test_a_number_of_threads_that_the_user_chose_stays(name: str) -> None:
    for of_user, of_step in (({name: "7"}, {}), ({}, {name: "7"})):
        env = compose_environment(of_user, of_step, {}, 2.0, 2.0)
        assert env[name] == "7"
        assert contract.ENV_THREADS not in env
        assert env.get("OMP_NUM_THREADS", "7") == "7"


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ({}, 3),
        ({"OMP_NUM_THREADS": "1"}, 1),
        ({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "2"}, 2),
        ({"OMP_NUM_THREADS": "4,2"}, 0),
        ({"OMP_NUM_THREADS": ""}, 3),
    ],
)
def test_policies_are_told_of_the_threads_that_we_or_the_user_chose(env: dict[str, str], told: int) -> None:
    assert threads_told(env, cpus=4.0, part=3.5) == told


def test_hooks_follow_the_share_where_the_world_chose_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", object())
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert not threads._may_choose()
    monkeypatch.setenv(contract.ENV_THREADS, "2")
    assert threads._may_choose()


def test_hooks_log_to_the_sweeps_mlflow_wherever_the_script_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """MLflow's ``set_tracking_uri`` sets the first variable too."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://the.scripts.own")
    monkeypatch.setenv(contract.ENV_TRACKING, "http://the.sweeps")
    assert tracking_uri() == "http://the.sweeps"
    monkeypatch.setenv(contract.ENV_TRACKING, "$(MLFLOW_TRACKING_URI)")  # as Kubernetes leaves it that does not know it
    assert tracking_uri() == "http://the.scripts.own"


def test_variables_that_differ_between_attempts_alone_do_not_ask_for_a_new_process() -> None:
    own = {contract.ENV_ATTEMPT: "a", contract.ENV_RUN: "r", "RANK": "0", "PWD": "/x", "CUDA_VISIBLE_DEVICES": "1"}
    assert common({**own, "KERAS_BACKEND": "torch"}) == {"KERAS_BACKEND": "torch"}
