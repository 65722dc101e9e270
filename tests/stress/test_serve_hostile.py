"""Ten thousand hostile requests to `drapps serve`, from several threads, while honest clients ask for samples.

    pytest tests/stress/test_serve_hostile.py            (STRESS_SEED repeats a run)
"""

import os
import random
import sys
import tarfile
import threading
from pathlib import Path

import pytest

import drapps

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

from hostile_requests import Requests
from imagesets import write_folder
from serve_client import SAMPLE, Server

SEED = int(os.environ.get("STRESS_SEED", random.randrange(2**32)))
N_REQUESTS, N_THREADS, N = 10000, 4, 12


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("serve") / "data"
    write_folder(root / "train", N)
    (root / "shards").mkdir()
    with tarfile.open(root / "shards" / "a.tar", "w") as tar:
        for path in sorted((root / "train").glob("*/*.jpg")):
            tar.add(path, f"{path.stem}.jpg")
    (root / "list.csv").write_text("path,label\ntrain/ant/000.jpg,1\n")
    return root


def resident(process):
    """Bytes of memory that a process has."""
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_hostile_requests(root):
    print("seed", SEED)
    graph = drapps.read(root / "train").decode().random_resized_crop((24, 20)).random_horizontal_flip().to_json()
    entries = [[i, 0, i % 4, None] for i in range(N)]
    with Server(root, "--cpus", "1", "--max-samples", "50", "--max-request", "20000", "--idle", "20") as server:
        want = [f.payload for f in server.client().samples("train", [[i, 0, 0, None] for i in range(N)])]
        statuses, wrong, over = [], [], threading.Event()

        def attack(number):
            statuses.append(Requests(root, graph, SEED + number).send(server.port, N_REQUESTS // N_THREADS))

        def ask():
            while not over.is_set():
                for frame in server.client().samples("train", entries, graph):
                    if frame.kind != SAMPLE or (frame.prefix == 0 and frame.payload != want[frame.id]):
                        wrong.append(frame.id)

        Requests(root, graph, SEED + 99).send(server.port, 500)  # buffers have their size
        before = resident(server.process)
        attackers = [threading.Thread(target=attack, args=(n,)) for n in range(N_THREADS)]
        honest = threading.Thread(target=ask)
        for thread in [*attackers, honest]:
            thread.start()
        for thread in attackers:
            thread.join()
        over.set()
        honest.join()
        assert sum(sum(counts.values()) for counts in statuses) == N_REQUESTS
        assert not wrong and server.process.poll() is None
        assert resident(server.process) < before + (64 << 20)
        assert server.stop() == 0
