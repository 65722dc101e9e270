"""drapps codec: the stages of the compression library, and how fast codecs are on files."""

from drapps.printing import bytes_text, print_json, print_table

HELP = "list the compression codecs, or measure them on files"
MOST = 64 << 20  # bytes read of each class


def add_arguments(parser):
    parts = parser.add_subparsers(dest="part", metavar="part", required=True)
    part = parts.add_parser("list", help="the stages of codecs", description="Lists the stages of codecs.")
    part.add_argument("--json", action="store_true", help="print JSON")
    part = parts.add_parser("bench", help="measure codecs on files", description="Measures every codec that suits a "
                            "class of data on the files of that class, and keeps the figures for this machine.")
    part.add_argument("files", nargs="+", metavar="FILE", help="files; .npy files are arrays")
    part.add_argument("--codec", action="append", metavar="SPEC", help="measure this codec (several: repeat it)")
    part.add_argument("--dtype", default="uint8", help="element type of files that are not .npy (uint8)")
    part.add_argument("--seconds", type=float, default=0.3, help="for each codec and class (0.3)")
    part.add_argument("--no-keep", action="store_true", help="do not keep the figures")
    part.add_argument("--json", action="store_true", help="print JSON")


def run(args):
    return _list(args) if args.part == "list" else _bench(args)


def _list(args):
    from drapps import codec

    rows = codec.codecs()
    if args.json:
        return print_json(rows)
    print_table(("stage", "kind", "parameter", "file", "what it does"), [_stage(row) for row in rows])


def _stage(row):
    p = row["parameter"]
    level = f"{p['name']} {p['min']} to {p['max']} ({p['default']})" if p else ""
    summary = row["summary"] + (f"; error: {row['error']}" if row["error"] else "")
    return row["name"], row["kind"], level, row["extension"] or "", summary


def _bench(args):
    groups = _groups(args)
    _check_codecs(args.codec or (), {dtype for _, dtype in groups})
    rows = [row for group in groups.values() for row in _measure(group, args)]
    if args.json:
        return print_json(rows)
    figures = [(name, "right") for name in ("ratio", "encode MB/s", "decode MB/s")]
    print_table(("class", "type", "bytes", "codec", *figures), [_figures(row) for row in rows])


def _check_codecs(specs, dtypes):
    """Whether each codec that was asked for takes the elements of some file."""
    from drapps import _core

    for spec in specs:
        opened = _core.open_codec(spec)
        if not any(map(opened.takes, dtypes)):
            raise _core.ArgumentError(f"--codec {spec} does not take elements of type {', '.join(sorted(dtypes))}")


def _figures(row):
    return (row["class"], row["dtype"], bytes_text(row["bytes"]), row["codec"], f"{row['ratio']:.2f}",
            f"{row['encode_bytes_per_s'] / 1e6:.0f}", f"{row['decode_bytes_per_s'] / 1e6:.0f}")


def _groups(args):
    """The contents of the files by (class, type): one array each, up to MOST bytes."""
    import numpy

    from drapps import _core, codec

    found = {}
    for path in args.files:
        array = _read(path, args.dtype)
        if not array.size:
            raise _core.FormatError(f"{path}: is empty: there is nothing to measure")
        if array.dtype.name in ("uint32", "uint64"):
            array = array.view(array.dtype.name[1:])  # codecs know the signed types of that size
        data_class = codec.choose(array).data_class
        found.setdefault((data_class, array.dtype.name), []).append(array)
    for (_, dtype), arrays in found.items():
        flat = numpy.concatenate([array.reshape(-1) for array in arrays]) if len(arrays) > 1 else arrays[0]
        arrays[:] = [flat.reshape(-1)[: MOST // numpy.dtype(dtype).itemsize] if len(arrays) > 1 or flat.nbytes > MOST
                     else flat]
    return {key: (*key, arrays[0]) for key, arrays in found.items()}


def _read(path, dtype):
    """A file as an array: a .npy file as it is, another as elements of a type."""
    import numpy

    from drapps import _core

    if path.endswith(".npy"):
        try:
            return numpy.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError):
            why = "no array of NumPy (.npy), a damaged one, or one of Python objects"
            raise _core.FormatError(f"{path}: {why}") from None
    with open(path, "rb") as file:
        data = file.read(MOST)
    try:
        element = numpy.dtype(dtype)
    except TypeError:
        raise _core.ArgumentError(f"--dtype must be an element type of NumPy, got {dtype!r}") from None
    return numpy.frombuffer(data, element, len(data) // element.itemsize)


def _measure(group, args):
    from drapps import _core, codec

    data_class, dtype, array = group
    specs = args.codec or codec.candidates(data_class, dtype)
    for spec in specs:
        if not _core.open_codec(spec).takes(dtype):
            continue
        keep = None if args.no_keep else data_class
        speed = codec.measure(array, spec, seconds=args.seconds, keep=keep)
        yield {"class": data_class, "dtype": dtype, "bytes": array.nbytes, "codec": spec, "ratio": speed.ratio,
               "encode_bytes_per_s": speed.encode_bytes_per_s, "decode_bytes_per_s": speed.decode_bytes_per_s}
