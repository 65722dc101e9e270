"""Epochs over a slow link: each policy of `offload`, with each share of the store's CPU; and ranges of a plain server.

Store and client are two hosts of the testbed, each on a CPU of its own.  All ways must deliver the same batches.  The
first epoch, in which rates are measured and sizes learnt, is told apart from the later ones.
"""

import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import drapps

from benchmarks.experiments.sophon import twins
from benchmarks.experiments.testbed.testbed import Testbed

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = pathlib.Path(drapps.__file__).parent / "drapps-serve"
POLICIES = ("off", "all", "resize", "fastflow", "sophon", "sophon+")
PORT, WEB_PORT = 9470, 8080
NGINX = """
{user}
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx.err;
daemon off;
events {{ worker_connections 512; }}
http {{
    access_log off;
    sendfile on;
    default_type application/octet-stream;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{ listen {port}; location / {{ root {root}; autoindex on; }} }}
}}
"""


def run(bed, case):
    """The lines of one child: [epoch, ...], explain."""
    done = bed.run_client([sys.executable, HERE / "epoch_child.py", json.dumps(case)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=1800)  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{case}: {(done.stderr or done.stdout).strip()[-2000:]}")
    *epochs, last = [json.loads(line) for line in done.stdout.splitlines()]
    return epochs, last["explain"]


def cases(args, quotas):
    """(quota, name, case) of a round: with no CPU the policies are one and the same."""
    for quota in quotas:
        for policy in args.policies if quota else ["off"]:
            yield quota, policy, {"source": f"drapps://{Testbed.address}:{PORT}/set", "offload": policy}
    if args.web:
        for ranges in ("off", "on"):
            yield None, f"nginx, ranges {ranges}", {"source": f"http://{Testbed.address}:{WEB_PORT}/", "ranges": ranges}


def measure(args, folder, data, say):
    """[row]: one for each case and round."""
    rows, hashes = [], {}
    for number in range(args.rounds):
        order = list(cases(args, args.quotas))
        random.Random(number).shuffle(order)
        for quota, name, case in order:
            say(f"round {number + 1} of {args.rounds}: {name}, {'no ops' if quota is None else f'{quota:g} CPUs'}")
            with Testbed(args.rate * 1e6, args.delay / 1000, pin=True) as bed:
                if quota is None:
                    bed.start_store(web_server(folder, data), WEB_PORT, stdout=subprocess.DEVNULL)
                else:
                    bed.start_store([PROGRAM, folder / "root", "--host", bed.address, "--port", PORT, "--cpus", quota],
                                    PORT, stdout=subprocess.DEVNULL)  # fmt: skip
                case = {**case, "epochs": args.epochs, "batch": 32, "step": args.step / 1000}
                epochs, explain = run(bed, case)
                cpu = bed.store_cpu_seconds()
            for epoch, found in enumerate(epochs):
                same = hashes.setdefault(epoch, found["hash"])
                if same != found["hash"]:
                    raise SystemExit(f"{name}, {quota} CPUs: epoch {epoch} has other batches than the others")
            rows.append({"round": number, "quota": quota, "way": name, "epochs": epochs, "explain": explain,
                         "store_cpu_s": cpu})  # fmt: skip
    return rows


def web_server(folder, data):
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, root=data, port=WEB_PORT, user="user root;"))
    return ["nginx", "-e", folder / "nginx.err", "-c", config]


def main(rest, make):
    parser = make("epochs", __doc__)
    parser.add_argument("--data", required=True, metavar="IMAGES", help="a folder of class folders with JPEGs")
    parser.add_argument("--twin", type=int, metavar="N", help="N images of the sizes of Open Images, made of them")
    parser.add_argument("--rate", type=float, default=100, metavar="MBIT", help="Mbit/s of the link (default: 100)")
    parser.add_argument("--delay", type=float, default=0, metavar="MS", help="from host to host (default: 0)")
    parser.add_argument("--quotas", type=float, nargs="+", default=[0, 0.1, 0.25, 0.5, 1], metavar="CPUS",
                        help="CPUs of the store for ops (default: 0 0.1 0.25 0.5 1)")  # fmt: skip
    parser.add_argument("--policies", nargs="+", default=POLICIES, choices=POLICIES, metavar="POLICY")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--step", type=float, default=0, metavar="MS", help="that the consumer takes for a batch")
    parser.add_argument("--web", action="store_true", help="also plain files and ranges of files from nginx")
    args = parser.parse_args(rest)
    if args.epochs < 2:
        parser.error(f"epochs must be at least 2, the first of which is told apart, got {args.epochs}")
    with tempfile.TemporaryDirectory(prefix="drapps-sophon-") as name:
        folder = pathlib.Path(name)
        data = pathlib.Path(args.data).resolve()
        if args.twin:
            data = twins.open_images_twin(data, folder / "twin", args.twin)
        (folder / "root").mkdir()
        # Links would lead out of the root, where the server does not follow them.
        twins.copied(data, folder / "root" / "set")
        data = folder / "root" / "set"
        sizes = [path.stat().st_size for path in twins.jpegs(data)]
        rows = measure(args, folder, data, lambda text: print(text, file=sys.stderr))
    small = sum(size > twins.CROP_BYTES for size in sizes)
    return {"experiment": "sophon epochs", "rate": args.rate, "images": len(sizes), "bytes": sum(sizes),
            "larger_than_crop": small, "rows": rows}  # fmt: skip


def tables(result):
    """[(title, head, rows)] for people."""
    found = {}
    for row in result["rows"]:
        found.setdefault((row["quota"], row["way"]), []).append(row)
    plain = statistics.median(
        epoch["bytes"] for row in result["rows"] if row["way"] == "off" for epoch in row["epochs"][1:]
    )
    shown = []
    for (quota, way), rows in found.items():
        later = [epoch for row in rows for epoch in row["epochs"][1:]]
        prepared = [row["epochs"][-1]["prepared"] - row["epochs"][-2]["prepared"] for row in rows]
        shown.append((
            "-" if quota is None else f"{quota:g}", way, f"{statistics.median(e['seconds'] for e in later):.2f}",
            f"{statistics.median(row['epochs'][0]['seconds'] for row in rows):.2f}",
            f"{statistics.median(e['bytes'] for e in later) / plain:.2f}",
            f"{statistics.median(prepared) / result['images']:.0%}",
            f"{statistics.median(row['store_cpu_s'] for row in rows):.1f}",
        ))  # fmt: skip
    head = ("CPUs of the store", "offload", ("s, later epochs", "right"), ("s, first epoch", "right"),
            ("bytes / off", "right"), ("prepared by the store", "right"), ("its CPU s, in all", "right"))  # fmt: skip
    larger = result["larger_than_crop"] / result["images"]
    yield (f"{result['images']} images, {result['bytes'] / 1e6:.0f} MB, {larger:.1%} larger than a crop; "
           f"{result['rate']:g} Mbit/s", head, shown)  # fmt: skip
