"""drapps cat: one field of one sample, as it is."""

import os
import sys

from drapps.counted import counted

HELP = "write a field of a sample to stdout"


def add_arguments(parser):
    parser.add_argument("path", help="a packed set, folder, list, tar or pattern of tars")
    what = "the key of a sample, or #NUMBER, and a field (default: the first one)"
    parser.add_argument("sample", metavar="KEY[.FIELD]", help=what)
    parser.add_argument("--format", default="auto", help="how to read it (default: auto)")


def run(args):
    from drapps.pipeline import read
    from drapps.set_files import as_bytes

    pipe = read(args.path, format=args.format)
    number, field = find(pipe.dataset, args.sample)
    value = pipe[number][field]
    text = str(value).encode() + b"\n" if getattr(value, "ndim", 1) == 0 or isinstance(value, int) else as_bytes(value)
    sys.stdout.flush()
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out:
        out.write(text)


def find(dataset, text):
    """The number of the sample and the name of the field that KEY[.FIELD] names."""
    from drapps import _core

    names = [field[0] for field in dataset.fields]
    fields = [name for name in names if text.endswith("." + name)]
    wanted = {text: names[0], **{text[: -len(name) - 1]: name for name in fields}}
    for key, field in wanted.items():
        if key.startswith("#") and key[1:].isdecimal() and int(key[1:]) < dataset.size:
            return int(key[1:]), field
    alike = []  # keys that are the text and an extension
    for i in range(dataset.size):
        if (key := dataset.key(i)) in wanted:
            return i, wanted[key]
        if key.rpartition(".")[0] == text:
            alike.append(key)
    hint = f"did you mean {alike[0]!r}?" if alike else "`drapps ls` lists the keys; #0 is the first sample"
    if text.startswith("#"):
        hint = f"there are {counted(dataset.size, 'sample')}"
    raise _core.NotFoundError(f"{dataset.name}: no sample {text!r}; the fields are {', '.join(names)}; {hint}")
