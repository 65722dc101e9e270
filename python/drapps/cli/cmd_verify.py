"""drapps verify: is a data set as it was written, and can every sample be read and decoded?"""

from drapps.cli.progress_bar import progress_bar
from drapps.counted import counted
from drapps.printable import printable
from drapps.printing import print_json

HELP = "check the checksums of a data set and decode every sample"


def add_arguments(parser):
    parser.add_argument("path", help="a packed set, folder, list, tar or pattern of tars")
    parser.add_argument("--format", default="auto", help="how to read it (default: auto)")
    parser.add_argument("--no-decode", action="store_true", help="read samples without decoding them")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args):
    from drapps.pipeline import read
    from drapps.set_files import verify

    n = read(args.path, format=args.format).dataset.size
    with progress_bar("checking", n) as show:
        files, samples = verify(args.path, format=args.format, decode=not args.no_decode, progress=show)
    if args.json:
        print_json({"samples": n, "damaged_files": [damage._asdict() for damage in files],
                    "damaged_samples": [damage._asdict() for damage in samples]})  # fmt: skip
        return 1 if files or samples else 0
    for damage in (*files, *samples):
        print(f"{printable(damage.name)}: {printable(damage.error)}")
    print(f"{printable(args.path)}: {counted(n, 'sample')}, {len(samples)} damaged"
          + (f"; {counted(len(files), 'damaged file')}" if files else ""))  # fmt: skip
    return 1 if files or samples else 0
