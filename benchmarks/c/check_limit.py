"""Tests the bare loop: check_limit.py PROGRAM.

Makes some JPEG files with Pillow (without Pillow: status 77, skipped) and runs the program in all its modes.
"""

import json
import os
import subprocess
import sys
import tempfile


def make_files(folder):
    try:
        from PIL import Image
    except ImportError:
        sys.exit(77)
    paths = []
    for i, size in enumerate([(300, 240), (64, 80), (500, 333)]):
        paths.append(os.path.join(folder, f"{i}.jpg"))
        Image.effect_noise(size, 40 + i).convert("RGB").save(paths[-1], quality=80, subsampling=i)
    return paths


def run(program, lines, *arguments):
    done = subprocess.run([program, *map(str, arguments)], input="".join(line + "\n" for line in lines), text=True,
                          capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_counts(program, paths):
    """Every sample is made and, with a consumer, read, also if the last batch is short, or the only one."""
    for threads, samples in ((1, 1), (1, 64), (2, 65), (3, 700)):
        for extra in ((), ("--consumer",), ("--files",), ("--consumer", "--files")):
            line = run(program, paths, "--threads", threads, "--samples", samples, *extra)
            want = {"threads": threads, "consumer": "--consumer" in extra, "files": "--files" in extra}
            assert line["settings"] == want and line["samples"] == samples, line
            assert line["samples_read"] == (samples if "--consumer" in extra else 0), line
            assert line["samples_per_s"] > 0 and line["files"] == len(paths) and not line["left_out"], line


def check_pixels(program, paths, folder):
    """Both decoders give the same pixels of a crop."""
    made = []
    for decoder in ("drapps", "libjpeg"):
        out = os.path.join(folder, decoder)
        run(program, [f"{path}\t3 5 40 50 1" for path in paths], "--decoder", decoder, "--pixels", out)
        with open(out, "rb") as f:
            made.append(f.read())
    assert made[0] == made[1] and len(made[0]) == len(paths) * 3 * 224 * 224 * 4


def check_mistakes(program, paths):
    for arguments in (("--consumers",), ("--threads",), ("--threads", "0"), ("--decoder", "x")):
        done = subprocess.run([program, *arguments], input="\n".join(paths), text=True, capture_output=True)
        assert done.returncode == 1 and done.stderr, arguments


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        paths = make_files(folder)
        check_counts(program, paths)
        check_pixels(program, paths, folder)
        check_mistakes(program, paths)


if __name__ == "__main__":
    main()
