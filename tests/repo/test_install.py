"""The installed C library is enough for a program of its own: headers, pkg-config file, shared object."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
N_IMAGES = 11


def call(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """A prefix that the library is installed in.  Without optimisation: only the linking is of interest here."""
    folder = tmp_path_factory.mktemp("install")
    env = {key: value for key, value in os.environ.items() if key not in ("DESTDIR", "MAKEFLAGS")}
    meson = [sys.executable, "-m", "mesonbuild.mesonmain"]
    call(*meson, "setup", folder / "build", ROOT, f"--prefix={folder / 'usr'}", "--libdir=lib", "-Doptimization=0",
         env=env)
    call(*meson, "compile", "-C", folder / "build", env=env)
    call(*meson, "install", "-C", folder / "build", "--no-rebuild", env=env)
    return folder / "usr"


@pytest.fixture
def images(tmp_path):
    rng = np.random.default_rng(1)
    for i in range(N_IMAGES):
        folder = tmp_path / "images" / f"class{i % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (40 + 7 * i, 90 - 5 * i, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{i}.jpg", quality=60 + 3 * i)
    return tmp_path / "images"


def build(prefix, folder, name, package="drapps"):
    """An example as a program against the installed library, and the environment that it runs in."""
    if not shutil.which("pkg-config"):
        pytest.skip("no pkg-config here")
    env = dict(os.environ, PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
    flags = call("pkg-config", "--cflags", "--libs", package, env=env).split()
    call("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", ROOT / f"examples/c/{name}.c", *flags, "-o", folder / name)
    return folder / name, dict(os.environ, LD_LIBRARY_PATH=str(prefix / "lib"))


@pytest.fixture
def program(prefix, tmp_path):
    return build(prefix, tmp_path, "load_folder")


def test_example_reads_a_folder(program, images):
    command, env = program
    out = call(command, images, 4, env=env)
    assert f"{N_IMAGES} samples in 3 batches" in out
    assert re.findall(r"image float32\[(\d+),3,64,64\]", out) == ["4", "4", "3"]
    labels = sum(float(text) for text in re.findall(r"label int64\[\d+\] sum ([\d.]+)", out))
    assert labels == sum(i % 3 for i in range(N_IMAGES))


def test_example_says_what_is_wrong(program, tmp_path):
    command, env = program
    done = subprocess.run([command, tmp_path / "nowhere"], env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert "nowhere" in done.stderr


def test_example_decodes_a_jpeg(prefix, images, tmp_path):
    command, env = build(prefix, tmp_path, "decode_jpeg")
    for path in sorted(images.rglob("*.jpg")):
        for crop in ([], [7, 5, 20, 30]):
            done = subprocess.run([command, path, *map(str, crop)], env=env, capture_output=True)
            assert done.returncode == 0, done.stderr
            want = np.asarray(Image.open(path).convert("RGB"))
            if crop:
                want = want[5:35, 7:27]
            head = b"P6\n%d %d\n255\n" % (want.shape[1], want.shape[0])
            assert done.stdout == head + want.tobytes()
    done = subprocess.run([command, path, "0", "0", "5000", "1"], env=env, capture_output=True, text=True)
    assert done.returncode == 1 and "5000 x 1 is not inside the image of" in done.stderr


def test_the_compression_library_stands_alone(prefix, tmp_path):
    command, env = build(prefix, tmp_path, "pack_array", "drapps-codec")
    assert re.fullmatch(r"\S+: 400000 bytes of ints became \d{5,6}, and came back\n", call(command, env=env))
    assert call(command, "delta+bitpack", env=env).startswith("delta+bitpack: ")
    done = subprocess.run([command, "zlib"], env=env, capture_output=True, text=True)
    assert done.returncode == 1 and 'no stage "zlib"' in done.stderr
    needed = call("ldd", command, env=env)
    assert "libdrapps-codec.so" in needed
    assert not re.search(r"libdrapps\.so|libjpeg|libpng|libtiff", needed)


@pytest.mark.parametrize("library", ["drapps", "drapps-codec"])
def test_only_the_public_names_are_exported(prefix, library):
    names = call("nm", "-D", "--defined-only", prefix / f"lib/lib{library}.so")
    exported = re.findall(r" [A-Z] (\S+)$", names, re.MULTILINE)
    assert exported
    assert [name for name in exported if not re.match(r"dr_[a-z]", name)] == []


def test_a_missing_library_is_named_with_its_package(tmp_path):
    env = dict(os.environ, PKG_CONFIG_LIBDIR=str(tmp_path), CMAKE_PREFIX_PATH="")
    done = subprocess.run([sys.executable, "-m", "mesonbuild.mesonmain", "setup", tmp_path / "build", ROOT], env=env,
                          capture_output=True, text=True)
    assert done.returncode != 0
    for package in ("libjpeg62-turbo-dev", "libjansson-dev", "libxxhash-dev", "jansson-devel", "jpeg-turbo"):
        assert package in done.stdout
