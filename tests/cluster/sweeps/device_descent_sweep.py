"""Five light trials that hold a device each."""

from typing import Final

from hera.workflows import Resources

from tests.cluster.sweeps.descent_sweep import descent

RATES: Final = (0.3, 0.02, 0.015, 0.01, 0.005)
DEVICE: Final = "example.com/device"

w = descent(RATES, resources=Resources(cpu_request="50m", memory_request="200Mi", gpus=1, gpu_flag=DEVICE))
