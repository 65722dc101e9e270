"""`drapps serve`: what the real process answers to plain HTTP clients."""

import json
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tarfile
import threading
import time
import warnings

import hostile_requests
import numpy
import pytest
from imagesets import write_folder
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from serve_client import ERROR, SAMPLE, SEGMENTS, Server, frames_of, raw_request

import drapps

SEED, N = 11, 12
FORMAT, ARG, LIMIT, STATE = -4, -1, -5, -7


def pipelines(folder):
    """The standard image pipeline, cut behind 0, 1, ... 5 ops."""
    parts = [drapps.read(folder)]
    parts.append(parts[-1].decode())
    parts.append(parts[-1].random_resized_crop((24, 20)))
    parts.append(parts[-1].random_horizontal_flip())
    parts.append(parts[-1].to_dtype(scale=True))
    parts.append(parts[-1].normalize([0.5, 0.4, 0.3], [0.2, 0.3, 0.4]))
    return parts


def local_arrays(pipeline, epoch):
    """What the loader makes of each sample: (image, label) by sample."""
    with pipeline.loader(1, seed=SEED, layout="NHWC", collate={"image": "list"}, outputs=["image", "label"],
                         output="numpy") as loader:  # fmt: skip
        loader.set_epoch(epoch)
        return [(images[0], int(labels[0])) for images, labels in loader]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Two sets of classes, a shard, a list, loose images, and what is none."""
    root = tmp_path_factory.mktemp("serve") / "data"
    write_folder(root / "train", N)
    write_folder(root / "val", 5)
    (root / "shards").mkdir()
    with tarfile.open(root / "shards" / "a.tar", "w") as tar:
        for path in sorted((root / "val").glob("*/*.jpg")):
            tar.add(path, f"{path.stem}.jpg")
    rows = [f"train/{p.parent.name}/{p.name},{i}\n" for i, p in enumerate(sorted((root / "train").glob("*/*.jpg")))]
    (root / "list.csv").write_text("path,label\n" + "".join(rows))
    (root / "notes.txt~").write_text("no set")
    (root / ".hidden").mkdir()
    return root


@pytest.fixture(scope="module")
def server(root):
    with Server(root, "--cpus", "2", "--max-samples", "50", "--max-request", "20000") as server:
        yield server


@pytest.fixture
def client(server):
    return server.client()


def stored(root, name="train"):
    """The files of a set in the order of its samples."""
    return sorted((root / name).glob("*/*.jpg"))


# --- what there is ---


def test_sets(client, root):
    assert client.ask("/v1/health").body == b"ok\n"
    info = client.ask("/v1/info").json()
    assert info["protocol"] == 1 and info["version"] == drapps.__version__ and info["cpus"] == 2
    assert "lz4" in info["codecs"] and len(info["ops"]) == 16
    sets = {s["name"]: s for s in client.ask("/v1/sets").json()["sets"]}
    assert sorted(sets) == ["list.csv", "shards", "train", "val"]
    assert sets["train"]["samples"] == N and sets["train"]["format"] == "folder"
    assert sets["train"]["bytes"] == sum(p.stat().st_size for p in stored(root))
    train = client.ask("/v1/sets/train").json()
    assert train["classes"] == ["ant", "bee", "cat"] and [f["name"] for f in train["fields"]] == [
        "image", "label", "key"]  # fmt: skip
    assert train["fingerprint"] == f"{drapps.read(root / 'train').dataset.fingerprint:016x}"


def test_unknown(client):
    for path in ["/", "/v1", "/v1/sets/", "/v1/sets/none", "/v1/sets/none/index", "/v1/sets/train/other", "/v2/sets",
                 "/v1/sets/train/index/x", "/v1/sets/train/files", "/v1/sets/train/files/"]:  # fmt: skip
        answer = client.ask(path)
        assert (path, answer.status) == (path, 404) and answer.json()["error"]
    assert client.ask("/v1/sets", "DELETE").status == 405
    assert client.ask("/v1/sets/train/samples").headers["Allow"] == "POST"
    assert client.ask("/v1/sets/train/index", "POST", b"x").status == 405


def section(index, number):
    """A section of an index file."""
    n = struct.unpack_from("<I", index, 12)[0]
    rows = [struct.unpack_from("<IIQQQ", index, 16 + 32 * i) for i in range(n)]
    offset, length = next((row[2], row[3]) for row in rows if row[0] == number)
    return index[offset : offset + length]


def test_index(client, root):
    answer = client.ask("/v1/sets/train/index")
    keys = section(answer.body, 2).split(b"\0")[:-1]
    assert [k.decode() for k in keys] == [f"{p.parent.name}/{p.name}" for p in stored(root)]
    values = section(answer.body, 5)
    sizes = numpy.frombuffer(values[: 8 * N], "<u8")
    assert sizes.tolist() == [p.stat().st_size for p in stored(root)]
    assert numpy.frombuffer(values[8 * N :], "<i8").tolist() == [0] * 4 + [1] * 4 + [2] * 4
    again = client.ask("/v1/sets/train/index", If_None_Match=answer.headers["ETag"])
    assert (again.status, again.body) == (304, b"")
    shards = client.ask("/v1/sets/shards/index").body
    assert section(shards, 4) == b"a.tar\0"
    tar = (root / "shards" / "a.tar").read_bytes()
    offset, size, path = struct.unpack_from("<QQI", section(shards, 5))
    assert path == 0 and tar[offset : offset + size] == stored(root, "val")[0].read_bytes()


def test_a_list_tells_its_files(client, root):
    """Paths of a list start from the folder that is served, and its labels are numbers of the index."""
    fields = {f["name"]: f["form"] for f in client.ask("/v1/sets/list.csv").json()["fields"]}
    assert fields == {"image": "file", "label": "number", "key": "key"}
    index = client.ask("/v1/sets/list.csv/index").body
    keys = [k.decode() for k in section(index, 2).split(b"\0")[:-1]]
    assert keys == [f"train/{p.parent.name}/{p.name}" for p in stored(root)]
    assert numpy.frombuffer(section(index, 5)[8 * N :], "<i8").tolist() == list(range(N))
    assert client.ask(f"/v1/sets/list.csv/files/{keys[3]}").body == stored(root)[3].read_bytes()


def test_a_list_may_not_lead_out(tmp_path):
    """A list that names files elsewhere: neither they nor their samples are sent."""
    (tmp_path / "secret.jpg").write_text("secret")
    data = write_folder(tmp_path / "data" / "train", 3).parent
    (data / "list.csv").write_text(f"path\n{tmp_path}/secret.jpg\n../secret.jpg\ntrain/ant/000.jpg\n")
    with Server(data) as server:
        client = server.client()
        frames = client.samples("list.csv", [[i, 0, 0, None] for i in range(3)])
        assert [f.kind for f in frames] == [ERROR, ERROR, SAMPLE]
        assert all(b"secret" not in f.payload.replace(b"secret.jpg", b"") for f in frames[:2])
        assert client.samples("list.csv", [[0, 0, 0, None, [[0, 3]]]])[0].kind == ERROR
        for path in ("../secret.jpg", f"{tmp_path}/secret.jpg"):
            assert client.ask(f"/v1/sets/list.csv/files/{path}").status == 404


# --- files ---


def test_files_and_ranges(client, root):
    path = stored(root)[0]
    data, url = path.read_bytes(), f"/v1/sets/train/files/{path.parent.name}/{path.name}"
    whole = client.ask(url)
    assert (whole.status, whole.body) == (200, data) and whole.headers["Accept-Ranges"] == "bytes"
    head = client.ask(url, "HEAD")
    assert head.status == 200 and head.body == b"" and int(head.headers["Content-Length"]) == len(data)
    for text, want in [("bytes=0-0", data[:1]), ("bytes=10-19", data[10:20]), ("bytes=100-", data[100:]),
                       ("bytes=-7", data[-7:]), (f"bytes=5-{len(data) + 99}", data[5:]),
                       ("bytes=-99999999", data)]:  # fmt: skip
        part = client.ask(url, Range=text)
        assert (text, part.status, part.body) == (text, 206, want)
        assert part.headers["Content-Range"].endswith(f"/{len(data)}")
    for text in ["bytes=5-2", "bytes=", "lines=1-2", "bytes=1-2,4-5", "bytes=x-3", "bytes=--4"]:
        assert (text, client.ask(url, Range=text).status) == (text, 200)
    beyond = client.ask(url, Range=f"bytes={len(data)}-")
    assert beyond.status == 416 and beyond.headers["Content-Range"] == f"bytes */{len(data)}"
    shard = (root / "shards" / "a.tar").read_bytes()
    assert client.ask("/v1/sets/shards/files/a.tar", Range="bytes=512-70000").body == shard[512:70001]


def test_conditions(client, root):
    path = stored(root)[0]
    url = f"/v1/sets/train/files/{path.parent.name}/{path.name}"
    tag = client.ask(url).headers["ETag"]
    assert client.ask(url, If_Match=tag).status == 200
    assert client.ask(url, If_Match='"x"').status == 412
    assert client.ask(url, If_Match=f"W/{tag}").status == 412
    assert client.ask(url, If_None_Match=f'"x", {tag}').status == 304
    assert client.ask(url, Range="bytes=0-3", If_Range=tag).status == 206
    assert client.ask(url, Range="bytes=0-3", If_Range='"other"').status == 200


def test_paths_stay_in_the_set(root, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    data = tmp_path / "data"
    write_folder(data / "train", 3)
    (data / "train" / "ant" / "out.jpg").symlink_to(secret)
    (data / "train" / "ant" / "in.jpg").symlink_to(data / "train" / "bee" / "001.jpg")
    (data / "train" / "cat" / "up").symlink_to(tmp_path)
    (data / "away").symlink_to(root / "val")
    with Server(data) as server:
        client = server.client()
        assert [s["name"] for s in client.ask("/v1/sets").json()["sets"]] == ["train"]
        assert client.ask("/v1/sets/train/files/ant/in.jpg").status in (200, 404)  # 404 before Linux 5.6
        for path in ["ant/out.jpg", "cat/up/secret.txt", "../../secret.txt", "ant/../../../secret.txt",
                     "%2e%2e/%2e%2e/secret.txt", "..%2f..%2fsecret.txt", str(secret), f"/{secret}", "ant", "ant/",
                     "ant//000.jpg", "./ant/000.jpg", "ant/000.jpg/", "ant/000.jpg%00.txt/..",
                     "%5c..%5csecret.txt"]:  # fmt: skip
            answer = client.ask(f"/v1/sets/train/files/{path}")
            assert b"secret" not in answer.body.replace(b"secret.txt", b"") and answer.status in (404, 400), path
        keys = [k.decode() for k in section(client.ask("/v1/sets/train/index").body, 2).split(b"\0")[:-1]]
        frame = client.samples("train", [[keys.index("ant/out.jpg"), 0, 0, None]])[0]
        assert frame.kind == ERROR and "secret" not in frame.error[1]
        server.stop()
    assert "away: left out: it leads out" in server.messages


# --- samples ---


@pytest.mark.parametrize("prefix", range(6))
def test_samples_equal_local_ones(client, root, prefix):
    parts = pipelines(root / "train")
    for epoch in range(3):
        entries = [[i, 0, prefix, None] for i in range(N)]
        frames = client.samples("train", entries, parts[-1].to_json(), SEED, epoch, outputs="image,label")
        assert [(f.kind, f.id, f.prefix, f.entry) for f in frames] == [(SAMPLE, i, prefix, i) for i in range(N)]
        if prefix == 0:
            assert [f.fields[0].tobytes() for f in frames] == [p.read_bytes() for p in stored(root)]
            assert [int(f.fields[1]) for f in frames] == [0] * 4 + [1] * 4 + [2] * 4
            assert [f.fields[2].tobytes().decode() for f in frames] == [
                f"{p.parent.name}/{p.name}" for p in stored(root)]  # fmt: skip
            continue
        for frame, (image, label) in zip(frames, local_arrays(parts[prefix], epoch), strict=True):
            fields = {f.ndim: f for f in frame.fields}
            assert fields[3].dtype == image.dtype and fields[3].tobytes() == image.tobytes()
            assert int(fields[0]) == label


def test_codecs(client, root):
    graph = pipelines(root / "train")[-1].to_json()
    plain, packed = client.samples("train", [[3, 0, 1, None], [3, 0, 1, "zstd:3"]], graph, SEED, outputs="image")
    data = packed.fields[0]
    assert isinstance(data, bytes) and len(data) < len(plain.fields[0].tobytes())
    assert drapps.codec.decode(data).tobytes() == plain.fields[0].tobytes()
    assert plain.cpu_us > 0
    lossy = client.samples("train", [[3, 0, 5, "bf16"]], graph, SEED, outputs="image")[0]
    assert lossy.prefix == 0  # never: the bytes would differ


def test_occurrences_and_mixed_entries(client, root):
    graph = pipelines(root / "train")[-1].to_json()
    entries = [[5, 0, 2, None], [5, 1, 2, None], [5, 0, 2, None], [5, 0, 0, None], [5, 0, 0, None, [[2, 9], [0, 4]]]]
    a, b, c, d, e = client.samples("train", entries, graph, SEED, outputs="image")
    assert a.payload == c.payload and a.payload != b.payload
    data = stored(root)[5].read_bytes()
    assert d.fields[0].tobytes() == data
    assert e.kind == SEGMENTS and e.segments == ([(2, 9), (0, 4)], data[2:11] + data[:4])


def test_ranges_of_a_shard(client, root):
    data = stored(root, "val")[1].read_bytes()
    frame = client.samples("shards", [[1, 0, 0, None, [[0, len(data)]]]])[0]
    assert frame.segments[1] == data


def stamps_of(client, name):
    data = section(client.ask(f"/v1/sets/{name}/index").body, 3)
    return struct.unpack(f"<{len(data) // 8}Q", data)


def test_ranges_with_a_stamp(tmp_path):
    """Ranges of a sample that has another stamp by now are refused, of any kind of set."""
    write_folder(tmp_path / "train", N)
    write_folder(tmp_path / "of", N)
    drapps.read(tmp_path / "of").pack(tmp_path / "packed")
    with Server(tmp_path) as server:
        client = server.client()
        path = sorted((tmp_path / "train").rglob("*.jpg"))[2]
        for name, data in (("train", path.read_bytes()), ("packed", drapps.read(tmp_path / "packed")[2]["image"])):
            data = bytes(data)
            stamp = f"{stamps_of(client, name)[2]:016x}"
            entries = [[2, 0, 0, None, [[3, 40], [90, 7]], stamp], [2, 0, 0, None, [[3, 40]], "0123456789abcdef"]]
            good, bad = client.samples(name, entries)
            assert good.kind == SEGMENTS and good.segments == ([(3, 40), (90, 7)], data[3:43] + data[90:97])
            assert bad.kind == ERROR and bad.error[0] == STATE and "changed" in bad.error[1]
        stamp = f"{stamps_of(client, 'train')[2]:016x}"
        path.write_bytes(path.read_bytes())
        assert client.samples("train", [[2, 0, 0, None, [[3, 40]], stamp]])[0].error[0] == STATE
        for ranges in ([[9, 5], [3, 2]], [[3, 0]], [[1 << 40, 5]], [[0, 1 << 50]]):
            assert client.samples("packed", [[2, 0, 0, None, ranges]])[0].kind == ERROR


def test_bad_entries_have_errors_of_their_own(client, root):
    size = stored(root)[0].stat().st_size
    frames = client.samples("train", [[N, 0, 0, None], [0, 0, 0, None], [0, 0, 0, None, [[size, 1]]],
                                      [0, 0, 0, None, [[0, size], [0, size]]]])  # fmt: skip
    assert [f.kind for f in frames] == [ERROR, SAMPLE, ERROR, ERROR]
    assert frames[0].error[0] == ARG and "sample 12 of 12" in frames[0].error[1]
    assert frames[2].error[0] == ARG and frames[3].error[0] == LIMIT


def test_what_cannot_run_here_is_sent_as_stored(client, root):
    batch = pipelines(root / "train")[-1].mixup(num_classes=3)
    for graph, prefix, more in [
        (batch.to_json(), 6, {}),  # works on whole batches
        ('{"version":1,"nodes":[{"op":"no_such_op"}]}', 1, {}),
        (batch.to_json(), 60, {}),
        (batch.to_json(), 2, {"outputs": "nothing"}),
        (batch.to_json(), 2, {"ops": "0123456789abcdef"}),
    ]:
        frame = client.samples("train", [[1, 0, prefix, None]], graph, SEED, **more)[0]
        assert (frame.kind, frame.prefix) == (SAMPLE, 0)
        assert frame.fields[0].tobytes() == stored(root)[1].read_bytes()
    ops = client.ask("/v1/info").json()["ops"]
    assert client.samples("train", [[1, 0, 2, None]], batch.to_json(), SEED, ops=ops)[0].prefix == 2


def test_a_damaged_sample_is_sent_as_stored(tmp_path):
    write_folder(tmp_path / "train", 3)
    (tmp_path / "train" / "ant" / "000.jpg").write_bytes(b"no image")
    with Server(tmp_path) as server:
        graph = drapps.read(tmp_path / "train").decode().to_json()
        frame = server.client().samples("train", [[0, 0, 1, None]], graph)[0]
        assert frame.prefix == 0 and frame.fields[0].tobytes() == b"no image"
        (tmp_path / "train" / "ant" / "000.jpg").unlink()
        status, text = server.client().samples("train", [[0, 0, 0, None]])[0].error
        assert status == -10 and str(tmp_path) not in text


def test_limits(client, server, root):
    assert client.ask("/v1/sets/train/samples", "POST", b"{").status == 400
    body = json.dumps({"seed": 0, "epoch": 0, "samples": [[0, 0, 0, None]] * 51})
    answer = client.ask("/v1/sets/train/samples", "POST", body)
    assert answer.status == 413 and "51 samples; 50 are allowed" in answer.json()["error"]
    assert client.ask("/v1/sets/train/samples", "POST", b" " * 20001).status == 413
    chunked = (b"POST /v1/sets/train/samples HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
               b"Connection: close\r\n\r\n" + b"4000\r\n" + b" " * 0x4000 + b"\r\n") + (
               b"4000\r\n" + b" " * 0x4000 + b"\r\n0\r\n\r\n")  # fmt: skip
    assert raw_request(server.port, chunked, half_close=False).startswith(b"HTTP/1.1 413")
    assert client.ask("/v1/health").status == 200
    graph = pipelines(root / "train")[-1].to_json()
    with Server(root, "--max-pixels", "1000") as small:
        assert small.client().samples("train", [[0, 0, 2, None]], graph)[0].prefix == 0


def test_gateway_form(client, root):
    parts = pipelines(root / "train")
    path = stored(root)[7]
    url = f"/v1/sets/train/files/{path.parent.name}/{path.name}"
    ops = {"seed": SEED, "epoch": 2, "prefix": 3, "graph": json.loads(parts[-1].to_json()), "outputs": "image"}
    answer = client.ask(url, X_Drapps_Ops=json.dumps(ops))
    assert answer.status == 200 and answer.headers["X-Drapps-Applied"] == "3"
    frame = frames_of(answer.body)[0]
    assert frame.id == 7 and frame.fields[0].tobytes() == local_arrays(parts[3], 2)[7][0].tobytes()
    shed = client.ask(url, X_Drapps_Ops=json.dumps({**ops, "prefix": 99}))
    assert shed.headers["X-Drapps-Applied"] == "0"
    assert frames_of(shed.body)[0].fields[0].tobytes() == path.read_bytes()
    for not_understood in ["{", "5", json.dumps({**ops, "unknown": 1})]:
        plain = client.ask(url, X_Drapps_Ops=not_understood)
        assert plain.status == 200 and plain.body == path.read_bytes() and "X-Drapps-Applied" not in plain.headers


def test_many_clients_at_once(server, root):
    parts = pipelines(root / "train")
    want = [local_arrays(parts[2], epoch) for epoch in range(2)]
    failures = []

    def work(number):
        client = server.client()
        for k in range(6):
            epoch = (number + k) % 2
            frames = client.samples("train", [[i, 0, 2 * (i % 2), None] for i in range(N)], parts[-1].to_json(), SEED,
                                    epoch, outputs="image,label")  # fmt: skip
            for i, frame in enumerate(frames):
                if i % 2 and frame.prefix:
                    if {f.ndim: f for f in frame.fields}[3].tobytes() != want[epoch][i][0].tobytes():
                        failures.append((number, k, i))
                elif frame.fields[0].tobytes() != stored(root)[i].read_bytes():
                    failures.append((number, k, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# --- the CPU budget ---


def metric(client, name, /, **labels):
    text = client.ask("/metrics").body.decode()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return sample.value
    return None


def test_without_cpus_nothing_runs(root):
    with Server(root, "--cpus", "0") as server:
        client = server.client()
        graph = pipelines(root / "train")[-1].to_json()
        frames = client.samples("train", [[i, 0, 2, None] for i in range(N)], graph, SEED)
        assert [f.prefix for f in frames] == [0] * N
        assert metric(client, "drapps_serve_samples_total", outcome="shed") == N
        assert metric(client, "drapps_serve_ops_cpu_seconds_total") == 0


def test_a_small_budget_sheds_and_never_fails(root):
    """With a thousandth of a CPU only the first samples are made: the rest is sent as it is stored."""
    with Server(root, "--cpus", "0.001") as server:
        client = server.client()
        graph = pipelines(root / "train")[-1].to_json()
        entries = [[i % N, 0, 5, None] for i in range(400)]
        prefixes = [f.prefix for f in client.samples("train", entries, graph, SEED)]
        assert set(prefixes) <= {0, 5} and prefixes.count(0) > 300
        n = metric(client, "drapps_serve_samples_total", outcome="offloaded")
        assert n == prefixes.count(5) and n + metric(client, "drapps_serve_samples_total", outcome="shed") == 400


# --- metrics, log, life ---


def test_metrics_and_access_log(root, tmp_path):
    log = tmp_path / "access.log"
    with Server(root, "--access-log", str(log)) as server:
        client = server.client()
        client.ask("/v1/sets/train/index")
        client.ask('/v1/sets/"evil%1b[2J%0aname')
        assert metric(client, "drapps_serve_requests_total", what="index", status="2xx") == 1
        assert metric(client, "drapps_serve_sets") == 4
        server.stop()
    lines = log.read_text().splitlines()
    assert len(lines) == 4
    assert ' - "GET /v1/sets/train/index" 200 ' in lines[0] and lines[0].split()[1] == "127.0.0.1"
    assert '"GET /v1/sets/\\x22evil\\x1b[2J\\x0aname" 404' in lines[1]


def test_graceful_stop(root, tmp_path):
    """A request in flight is answered; a new connection is refused; the status is 0."""
    with Server(root, "--cpus", "1", "--max-request", "1000000") as server:
        client = server.client()
        graph = pipelines(root / "train")[-1].to_json()
        entries = [[i % N, 0, 5, None] for i in range(3000)]
        got = []
        thread = threading.Thread(target=lambda: got.extend(client.samples("train", entries, graph, SEED)))
        thread.start()
        watcher = server.client()
        while not metric(watcher, "drapps_serve_jobs") and thread.is_alive():
            time.sleep(0.001)
        assert server.stop() == 0
        thread.join()
        assert len(got) == 3000
        with pytest.raises(OSError):
            server.client().ask("/v1/health")


def test_stop_does_not_wait_for_slow_clients(root):
    with Server(root, "--grace", "0.2") as server:
        body = json.dumps({"seed": 0, "epoch": 0, "samples": [[i % N, 0, 0, None] for i in range(4000)]}).encode()
        head = b"POST /v1/sets/train/samples HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
        with socket.create_connection(("127.0.0.1", server.port)) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.sendall(head + body)
            while not metric(server.client(), "drapps_serve_jobs"):
                time.sleep(0.01)
            assert server.stop() == 0


def test_kill_and_restart(root):
    with Server(root) as server:
        client = server.client(timeout=20)
        assert client.ask("/v1/health").status == 200
        port = server.port
        server.stop(signal.SIGKILL)
        with pytest.raises(OSError):
            client.ask("/v1/health")
        with Server(root, port=port) as second:
            assert second.port == port and client.ask("/v1/sets/train").json()["samples"] == N


def test_reload(tmp_path):
    data, tokens = tmp_path / "data", tmp_path / "tokens"
    write_folder(data / "train", 3)
    tokens.write_text("alice 0123456789abcdef0 *,@metrics\n")
    tokens.chmod(0o600)
    log = tmp_path / "log"
    with Server(data, "--tokens", str(tokens), "--access-log", str(log)) as server:
        alice = server.client(token="0123456789abcdef0")
        assert len(alice.ask("/v1/sets").json()["sets"]) == 1
        assert alice.ask("/v1/health").status == 200  # on the same connection: the request before it is in the log
        write_folder(data / "more", 3)
        tokens.write_text("bob 0123456789abcdef1 more,@metrics\n")
        log.rename(tmp_path / "old-log")
        server.process.send_signal(signal.SIGHUP)
        bob = server.client(token="0123456789abcdef1")
        while (answer := bob.ask("/v1/sets")).status == 401:
            time.sleep(0.01)
        assert [s["name"] for s in answer.json()["sets"]] == ["more"]
        assert alice.ask("/v1/sets").status == 401
        tokens.write_text("broken line\n")
        server.process.send_signal(signal.SIGHUP)
        while "nothing was read again" not in server.messages:  # what was read before still holds
            server.messages += server.process.stderr.readline()
        assert bob.ask("/v1/sets").status == 200
        assert server.stop() == 0
    assert log.exists() and "/v1/sets" in (tmp_path / "old-log").read_text()


# --- who may ---


def test_tokens(root, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("# clients\nalice aaaaaaaaaaaaaaaa0 train,va*\nops bbbbbbbbbbbbbbbb0 *,@metrics # all\n")
    tokens.chmod(0o640)
    log = tmp_path / "log"
    with Server(root, "--tokens", str(tokens), "--access-log", str(log)) as server:
        nobody, alice, ops = (
            server.client(token=t) for t in (None, "aaaaaaaaaaaaaaaa0", "bbbbbbbbbbbbbbbb0"))  # fmt: skip
        assert nobody.ask("/v1/health").status == 200
        for path in ["/v1/sets", "/v1/info", "/v1/sets/train", "/v1/sets/none", "/metrics", "/v1/sets/train/files/x"]:
            answer = nobody.ask(path)
            assert answer.status == 401 and answer.headers["WWW-Authenticate"].startswith("Bearer")
            assert server.client(token="aaaaaaaaaaaaaaaa1").ask(path).status == 401
        assert nobody.ask("/v1/sets/train/samples", "POST", b"{}").status == 401
        assert [s["name"] for s in alice.ask("/v1/sets").json()["sets"]] == ["train", "val"]
        assert alice.ask("/v1/sets/train").status == 200 and alice.ask("/metrics").status == 403
        for path in ["/v1/sets/shards", "/v1/sets/shards/index", "/v1/sets/shards/files/a.tar", "/v1/sets/none"]:
            assert alice.ask(path).status == 403
        assert alice.ask("/v1/sets/shards/samples", "POST", b"{}").status == 403
        assert ops.ask("/v1/sets/shards").status == 200 and ops.ask("/metrics").status == 200
        assert len(alice.samples("train", [[0, 0, 0, None]])) == 1
        server.stop()
    lines = log.read_text()
    assert ' alice "GET /v1/sets/train" 200' in lines and ' - "GET /v1/health"' in lines
    assert "aaaaaaaaaaaaaaaa" not in lines


@pytest.mark.parametrize(
    "text, mode, why",
    [
        ("alice short *\n", 0o600, "a token has 16 to 255"),
        ("alice aaaaaaaaaaaaaaaa0\n", 0o600, "a line is NAME TOKEN SET"),
        ("alice aaaaaaaaaaaaaaaa0 *\n", 0o644, "others may read"),
    ],
)
def test_wrong_tokens_files(root, tmp_path, text, mode, why):
    tokens = tmp_path / "tokens"
    tokens.write_text(text)
    tokens.chmod(mode)
    with pytest.raises(RuntimeError, match=why):
        Server(root, "--tokens", str(tokens))


def test_only_this_machine_by_name(client):
    """A page of another site, whose host name leads here, gets nothing."""
    assert client.ask("/v1/sets", Host="evil.example").status == 421
    assert client.ask("/v1/sets", Host="localhost:1").status == 200


def test_wrong_use(root, tmp_path):
    for arguments, why in [
        (["--cpus", "-1"], "--cpus must be 0 to 128"),
        (["--cert", "x"], "TLS needs both"),
        (["--cert", "x", "--key", "y"], "x: cannot open"),
        (["--max-samples", "1.5"], "whole number"),
        (["--nothing"], "usage: drapps serve"),
        (["--tokens", str(tmp_path / "none")], "none: cannot open"),
    ]:
        with pytest.raises(RuntimeError, match=why):
            Server(root, *arguments)
    (tmp_path / "empty").mkdir()
    with pytest.raises(RuntimeError, match="no data set in it"):
        Server(tmp_path / "empty")
    with pytest.raises(RuntimeError, match="address must be"):
        Server(root, host="no-number")


def test_the_folder_itself_may_be_a_set(root):
    for folder, name in [("train", "train"), ("shards", "shards"), ("train/ant", "ant")]:
        with Server(root / folder) as server:
            assert [s["name"] for s in server.client().ask("/v1/sets").json()["sets"]] == [name]


# --- TLS ---


def make_certificate(folder):
    """A key, and a certificate for localhost that it signs itself."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)  # fmt: skip
    return cert, key


def test_tls(root, tmp_path):
    cert, key = make_certificate(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    wrong, wrong_key = make_certificate(other)
    with Server(root, "--cert", str(cert), "--key", str(key)) as server:
        client = server.client(certificate=cert)
        path = stored(root)[0]
        url = f"/v1/sets/train/files/{path.parent.name}/{path.name}"
        assert client.ask(url).body == path.read_bytes()
        shard = (root / "shards" / "a.tar").read_bytes()
        assert client.ask("/v1/sets/shards/files/a.tar", Range="bytes=100-").body == shard[100:]
        graph = pipelines(root / "train")[-1].to_json()
        assert [f.prefix for f in client.samples("train", [[i, 0, 2, None] for i in range(N)], graph)].count(2) > 0
        with pytest.raises(ssl.SSLError):
            server.client(certificate=wrong).ask("/v1/health")
        plain = raw_request(server.port, b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert not plain.startswith(b"HTTP/1.1 2")
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.load_verify_locations(cert)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection(("127.0.0.1", server.port)) as plain, pytest.raises((ssl.SSLError, OSError)):
            old.wrap_socket(plain, server_hostname="localhost")
        assert client.ask("/v1/health").status == 200
    with pytest.raises(RuntimeError, match="is the key that of the certificate"):
        Server(root, "--cert", str(cert), "--key", str(wrong_key))


# --- clients that mean harm ---


def test_hostile_requests(server, client, root):
    """Thousands of requests, changed at random: each is answered or closed, and the server lives."""
    seed = int(os.environ.get("DRAPPS_TEST_SEED", 1))
    print("seed", seed)
    hostile = hostile_requests.Requests(root, pipelines(root / "train")[-1].to_json(), seed)
    statuses = hostile.send(server.port, int(os.environ.get("DRAPPS_TEST_ROUNDS", 2000)))
    assert server.process.poll() is None
    assert all(status is None or status == 100 or 200 <= status < 500 or status in (501, 505) for status in statuses)
    assert statuses[200] and statuses[400]  # else they were no requests at all
    assert client.ask("/v1/sets/train").json()["samples"] == N
    while metric(client, "drapps_serve_jobs"):
        time.sleep(0.01)
    assert metric(client, "drapps_serve_waiting_bytes") == 0


def test_slow_clients(root):
    """Connections that send their request a byte at a time, or none, are cut off; others are served meanwhile."""
    with Server(root, "--idle", "1", "--connections", "8") as server:
        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(6)]
        begin = time.monotonic()
        request = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 1000
        sent, alive = 0, list(slow[:3])
        while alive and time.monotonic() - begin < 50:
            for s in list(alive):
                try:
                    s.send(request[sent % len(request) :][:1])
                    s.settimeout(0.001)
                    if s.recv(1000) == b"":
                        alive.remove(s)
                except TimeoutError:
                    pass
                except OSError:
                    alive.remove(s)
            sent += 1
            assert server.client().ask("/v1/health").status == 200
        assert not alive
        for s in slow[3:]:
            s.settimeout(50)
            assert s.recv(10) == b""
        for s in slow:
            s.close()


def test_more_connections_than_allowed(root):
    """The one that has been idle for longest gives way."""
    with Server(root, "--connections", "4") as server:
        clients = [server.client() for _ in range(12)]
        for client in clients:
            assert client.ask("/v1/health").status == 200
        while metric(clients[-1], "drapps_serve_connections") > 5:  # it closes them in its own time
            time.sleep(0.01)


def test_a_reader_that_stops_reading_costs_little(root):
    """What is made and not read is limited; other requests go on."""
    with Server(root, "--cpus", "1") as server:
        body = json.dumps({"seed": 0, "epoch": 0, "samples": [[i % N, 0, 0, None] for i in range(4000)]}).encode()
        big = write_big(root)
        try:
            server.process.send_signal(signal.SIGHUP)
            client = server.client()
            while client.ask("/v1/sets/big").status == 404:
                time.sleep(0.01)
            head = b"POST /v1/sets/big/samples HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
            with socket.create_connection(("127.0.0.1", server.port)) as s:
                s.sendall(head + body)
                while not (metric(client, "drapps_serve_waiting_bytes") or 0) > 4e6:
                    time.sleep(0.01)
                for _ in range(5):
                    assert client.samples("train", [[0, 0, 0, None]])[0].kind == SAMPLE
                    time.sleep(0.02)
                assert metric(client, "drapps_serve_waiting_bytes") < 40e6
                assert metric(client, "drapps_serve_waiting_samples") > 3900
            while metric(client, "drapps_serve_jobs"):  # its client is gone
                time.sleep(0.01)
            assert metric(client, "drapps_serve_waiting_bytes") == 0
        finally:
            shutil.rmtree(big)


def write_big(root):
    """A set whose files have 1 MB each."""
    for name in ("a", "b"):
        (root / "big" / name).mkdir(parents=True)
    for i in range(N):
        (root / "big" / "ab"[i % 2] / f"{i}.jpg").write_bytes(os.urandom(1 << 20))
    return root / "big"


def test_many_requests_of_one_client(root):
    """Above 64 at a time a client is told to come back."""
    with Server(root, "--per-client", "200") as server:
        body = json.dumps({"seed": 0, "epoch": 0, "samples": [[i % N, 0, 0, None] for i in range(4000)]}).encode()
        head = b"POST /v1/sets/train/samples HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
        sockets = []
        try:
            for _ in range(70):
                s = socket.create_connection(("127.0.0.1", server.port))
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                s.sendall(head + body)
                sockets.append(s)
            answers = [s.recv(64) for s in sockets]
            assert sum(b" 429 " in a for a in answers) + sum(b" 200 " in a for a in answers) == 70
            assert any(b" 429 " in a for a in answers)
        finally:
            for s in sockets:
                s.close()
