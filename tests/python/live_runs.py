"""Programs that show loaders: one that makes its numbers up (tests/golden/live_run.c), and one that really loads."""

import os
import subprocess
import sys
from contextlib import contextmanager

from golden import find_program

REAL = """
import sys, time
import drapps
loader = drapps.read(sys.argv[1]).decode().resize(64).center_crop(56).loader(batch_size=4, workers=1)
for epoch in range(10**6):
    for batch in loader:
        time.sleep(0.01)
    if epoch == 2:
        print("shown", flush=True)
"""


@contextmanager
def running(command, folder):
    """A process with DRAPPS_LIVE=folder that prints a line when it shows something; killed in the end."""
    env = {**os.environ, "DRAPPS_LIVE": str(folder)}
    process = subprocess.Popen([str(part) for part in command], env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "shown\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def made_up(folder, *names, seconds=60):
    return running([find_program("live_run"), seconds, *names], folder)


def real(folder, images):
    return running([sys.executable, "-c", REAL, images], folder)
