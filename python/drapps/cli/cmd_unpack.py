"""drapps unpack: the files that a data set was packed from."""

from drapps.cli.progress_bar import progress_bar
from drapps.counted import counted
from drapps.printable import printable
from drapps.printing import print_json

HELP = "write the samples of a data set as the files that they were"


def add_arguments(parser):
    parser.add_argument("path", help="a packed set, tar or pattern of tars")
    parser.add_argument("folder", help="where to write the files")
    parser.add_argument("--format", default="auto", help="how to read it (default: auto)")
    parser.add_argument("--force", action="store_true", help="replace files that are there")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args):
    from drapps.pipeline import read
    from drapps.set_files import unpack

    n = read(args.path, format=args.format).dataset.size
    with progress_bar("unpacking", n) as show:
        written, damaged = unpack(args.path, args.folder, format=args.format, force=args.force, progress=show)
    if args.json:
        print_json({"samples": n, "files": written, "damaged_samples": [damage._asdict() for damage in damaged]})
        return 1 if damaged else 0
    for damage in damaged:
        print(f"{printable(damage.name)}: {printable(damage.error)}")
    print(f"{printable(args.folder)}: {counted(written, 'file')} of {counted(n, 'sample')}"
          + (f", {len(damaged)} damaged" if damaged else ""))  # fmt: skip
    return 1 if damaged else 0
