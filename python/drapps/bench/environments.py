"""One virtual environment per peer, made by `drapps bench setup`.

Versions are pinned so that a table can be repeated.  pip's own settings (index, proxy, wheels on disk) apply.
"""

import os
import shutil
import subprocess
import sys
import venv
from collections import namedtuple

TORCH = ("torch==2.13.0", "numpy")
TORCHVISION = "torchvision==0.28.0"
PILLOW = "pillow==13.0.0"

# packages: for pip.  alone: installed after them with --no-deps, because their wheels ask for a CUDA torch.
# source: built here against the environment's own packages.  system: Debian packages they need.
Environment = namedtuple("Environment", "packages alone source system", defaults=((), (), ()))

TABLE = {
    "torch": Environment((*TORCH, PILLOW, "simplejpeg==1.9.0", "opencv-python-headless==5.0.0.93"), (TORCHVISION,),
                         (), ("gcc", "binutils")),
    "dali": Environment((*TORCH, "nvidia-dali-cuda120==2.4.0")),
    "tf": Environment(("tensorflow-cpu==2.21.0",)),
    "ffcv": Environment((*TORCH, PILLOW, "numba==0.68.1", "setuptools", "wheel"), (TORCHVISION,), ("ffcv==1.0.2",),
                        ("g++", "pkg-config", "libopencv-dev", "libturbojpeg0-dev")),
    "spdl": Environment((*TORCH, "spdl==0.8.0", "spdl-io==0.8.0"), (), (), ("ffmpeg",)),
    "streaming": Environment((*TORCH, PILLOW, "mosaicml-streaming==0.13.0"), (TORCHVISION,), (), ("gcc", "binutils")),
    "litdata": Environment((*TORCH, PILLOW, "litdata==0.2.76"), (TORCHVISION,), (), ("gcc", "binutils")),
    "codecs": Environment(("numpy", "zstandard==0.25.0", "lz4==4.4.5", "blosc2==4.14.1", "pcodec==1.1.0")),
    "rl": Environment((*TORCH, "gymnasium==1.4.0", "stable-baselines3==2.9.2")),
    "webdataset": Environment((*TORCH, PILLOW, "webdataset==1.0.2"), (TORCHVISION,), (), ("gcc", "binutils")),
}
READY = "drapps-ready"  # written last: an environment without it is incomplete


def default_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "drapps", "peers")


def python(folder, name):
    """Return the interpreter of an environment; "": the running one."""
    return os.path.join(folder, name, "bin", "python") if name else sys.executable


def missing(folder, name):
    """Return why an environment cannot be used, or None."""
    if not name or os.path.exists(os.path.join(folder, name, READY)):
        return None
    return f"no environment: drapps bench setup {name} --envs {folder}"


def missing_system(names):
    """Return the Debian packages of these environments that are not installed; empty without dpkg."""
    wanted = {package for name in names for package in TABLE[name].system}
    if not shutil.which("dpkg-query"):
        return []
    return sorted(package for package in wanted if not _installed(package))


def _installed(package):
    query = subprocess.run(["dpkg-query", "-W", "-f", "${Status}", package], capture_output=True, text=True)
    return query.stdout.endswith("ok installed")


def _pip(interpreter, *arguments):
    subprocess.run([interpreter, "-m", "pip", "install", "--quiet", *arguments], check=True)


def make(folder, name):
    """Make or complete an environment."""
    env, interpreter = TABLE[name], python(folder, name)
    if not os.path.exists(interpreter):
        venv.create(os.path.join(folder, name), with_pip=True)
    _pip(interpreter, *env.packages)
    if env.alone:
        _pip(interpreter, "--no-deps", *env.alone)
        subprocess.run([interpreter, os.path.join(os.path.dirname(__file__), "standins.py")], check=True)
    if env.source:
        _pip(interpreter, "--no-build-isolation", *env.source)
    with open(os.path.join(folder, name, READY), "w") as f:
        f.write("\n".join(env.packages + env.alone + env.source) + "\n")


def setup(names, folder, say=print):
    """Make the environments `names`; return those that failed, with the reason."""
    os.makedirs(folder, exist_ok=True)
    absent = missing_system(names)
    if absent:
        say(f"system packages to install first: apt-get install {' '.join(absent)}")
    failed = {}
    for name in names:
        say(f"{name}: {', '.join(TABLE[name].packages + TABLE[name].alone + TABLE[name].source)}")
        try:
            make(folder, name)
        except (subprocess.CalledProcessError, OSError) as error:
            failed[name] = str(error)
            say(f"{name}: failed: {error}")
    return failed
