"""drapps profile: where the time of a sample goes, op by op."""

from drapps.cli.show import bytes_text, print_json, print_table

HELP = "time and bytes of each op on your files"


def add_arguments(parser):
    parser.add_argument("path", help="a folder, list, tar or pattern of tars")
    parser.add_argument("--format", default="auto", help="how to read it (default: auto)")
    parser.add_argument("--graph", metavar="FILE", help="JSON of Pipeline.to_json (default: the usual training chain)")
    parser.add_argument("--size", type=int, default=224, help="side of the crop in the usual chain (default: 224)")
    parser.add_argument("--samples", type=int, default=256, help="samples to run (default: 256)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args):
    from drapps import _core
    from drapps.pipeline import read

    if args.samples < 1:
        raise _core.ArgumentError(f"--samples is {args.samples}, must be at least 1")
    pipe = _pipeline(read(args.path, format=args.format), args)
    if not len(pipe):
        raise _core.FormatError(f"{args.path}: has no samples")
    with pipe.loader(batch_size=1, workers=0, outputs="image", collate={"image": "list"}) as loader:
        facts = loader.profile(args.samples)
    if args.json:
        return print_json(facts)
    _show(facts)


def _pipeline(pipe, args):
    from drapps import IMAGENET_MEAN, IMAGENET_STD

    if args.graph:
        with open(args.graph, encoding="utf-8") as file:
            return pipe.from_json(file.read())
    cropped = pipe.decode().random_resized_crop(args.size).random_horizontal_flip()
    return cropped.normalize(mean=IMAGENET_MEAN, std=IMAGENET_STD)


def _show(facts):
    """One row per op; the ops one by one beside what the thread's clock says of all."""
    total = facts["sum_us"] or 1
    rows = [("read", facts["read_us"], "", "")]
    rows += [(op["op"], op["us"], bytes_text(op["in_bytes"]), bytes_text(op["out_bytes"])) for op in facts["ops"]]
    rows += [("store", facts["store_us"], "", ""), ("sum", facts["sum_us"], "", "")]
    rows += [("CPU time, end to end", facts["cpu_us"], "", "")]
    columns = ("op", ("µs a sample", "right"), ("share", "right"), ("bytes in", "right"), ("bytes out", "right"))
    print_table(columns, [(name, f"{us:.1f}", f"{us / total:.0%}", *sizes) for name, us, *sizes in rows])
    bad = f", {facts['bad']} bad" if facts["bad"] else ""
    print(f"{facts['samples']} samples{bad}, one thread, each op by itself; a loader fuses them and is faster")
