"""The variables by which outer launchers tell a worker who it is, which is not for the trials of a sweep in it.

``docs/reference/what-scripts-may-do.md`` has the same list. Left out of it are variables that say where a program may
write (``TMPDIR``), which devices it has (``CUDA_VISIBLE_DEVICES``), where a server is (``RAY_ADDRESS``, ``FLUX_URI``),
and how a library is set.
"""

from collections.abc import Collection, Mapping
from typing import Final

OURS: Final = "SPECON_"
"""What variables of an outer sweep begin with: a trial never has them."""
OF_LAUNCHERS: Final[Mapping[str, tuple[str, ...]]] = {
    "torchrun, `torch.distributed`, Lightning": (
        *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "GROUP_WORLD_SIZE"),
        *("ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_*", "PET_*"),
    ),
    "TensorFlow": ("TF_CONFIG",),
    "JAX": ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"),
    "Slurm": ("SLURM_*", "SLURMD_*", "SRUN_*"),
    "PBS, Torque": ("PBS_*",),
    "LSF": ("LSB_*", "LS_JOBPID", "JSM_*"),
    "Grid Engine": ("SGE_TASK_*", "PE_HOSTFILE"),
    "Flux": ("FLUX_JOB_*", "FLUX_TASK_*", "FLUX_KVS_NAMESPACE"),
    "Ray": ("RAY_JOB_*", "RAY_NODE_ID", "RAY_RAYLET_PID"),
    "Open MPI": (
        *("OMPI_COMM_WORLD_*", "OMPI_UNIVERSE_SIZE", "OMPI_APP_CTX_NUM_PROCS", "OMPI_NUM_APP_CTX", "OMPI_FIRST_RANKS"),
        *("OMPI_FILE_LOCATION", "OMPI_MCA_ess_*", "OMPI_MCA_orte_*", "PRTE_*"),
    ),
    "MPICH, Intel MPI, MVAPICH, Cray": (
        *("PMI_*", "PMI2_*", "PMIX_*", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "HYDI_*", "MV2_COMM_WORLD_*"),
        *("PALS_*", "ALPS_APP_PE"),
    ),
    "Horovod, DeepSpeed": (
        *("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE", "HOROVOD_CROSS_RANK"),
        *("HOROVOD_CROSS_SIZE", "HOROVOD_GLOO_*", "HOROVOD_HOSTNAME", "CROSS_RANK", "CROSS_SIZE"),
    ),
    "a run of MLflow around the sweep": ("MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID"),
    "an outer sweep": (f"{OURS}*",),
}
"""By launcher. A name that ends with ``*`` stands for all that begin so."""
KEPT: Final = ("SLURM_TMPDIR", "PBS_JOBDIR")
"""Of those, folders that a program may write to."""
_ALL: Final = tuple(name for names in OF_LAUNCHERS.values() for name in names)


def is_of_a_launcher(name: str) -> bool:
    """Return whether a variable is one of an outer launcher's."""
    return name not in KEPT and is_among(name, _ALL)


def is_among(name: str, names: Collection[str]) -> bool:
    """Return whether ``names`` has a variable, or a beginning of it with a ``*`` at the end."""
    return any(name.startswith(one[:-1]) if one.endswith("*") else name == one for one in names)
