"""The energy and the CO2 of a run: power over time, times the intensity of the grid."""

from typing import NamedTuple

from drapps.report.figures import integral

# The world's mean of 2023, life cycle included: Ember, Yearly Electricity Data, 2024 edition.
WORLD_GRID = 481.0  # gCO2 a kWh
LONGEST_STEP = 10.0  # seconds: the time between readings that are further apart was not measured
JOULES_PER_KWH = 3.6e6


class Energy(NamedTuple):
    """The energy of the machine's CPU packages and GPUs, including other programs."""

    kwh: float
    gco2: float
    grid: float  # gCO2 a kWh
    watts: float  # mean
    modelled: bool  # estimated from CPU use, not measured
    gpu: bool  # GPUs are included


def energy(run, grid=WORLD_GRID):
    """Return the energy of a run; None without a power sensor."""
    joules = seconds = 0.0
    for name in ("power", "gpu_power"):
        area, time = integral(run.snapshot_clock, run.sensor(name), LONGEST_STEP)
        joules, seconds = joules + area, max(seconds, time)
    if not seconds:
        return None
    kwh = joules / JOULES_PER_KWH
    gpu = any(v is not None for v in run.sensor("gpu_power"))
    return Energy(kwh, kwh * grid, grid, joules / seconds, run.modelled("power"), gpu)
