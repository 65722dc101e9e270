"""The pipeline of a command: data with the usual training chain, or with a chain from a file."""


def add_arguments(parser):
    """Add the options for reading and processing data."""
    parser.add_argument("--format", default="auto", help="format of the data (default: auto)")
    parser.add_argument(
        "--graph", metavar="FILE", help="file with the JSON of Pipeline.to_json (default: the usual training chain)"
    )
    parser.add_argument("--size", type=int, default=224, help="side of the crop of the usual chain (default: 224)")


def pipeline_of(args):
    """Return the pipeline over args.path."""
    from drapps import IMAGENET_MEAN, IMAGENET_STD
    from drapps.pipeline import read

    pipe = read(args.path, format=args.format)
    if args.graph:
        with open(args.graph, encoding="utf-8") as file:
            return pipe.from_json(file.read())
    cropped = pipe.decode().random_resized_crop(args.size).random_horizontal_flip()
    return cropped.normalize(mean=IMAGENET_MEAN, std=IMAGENET_STD)
