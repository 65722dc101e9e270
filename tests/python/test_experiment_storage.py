"""drapps experiment storage: what counts as matched, arrays of data, and shards beside files, on a small set."""

import numpy as np
import pytest

from benchmarks.experiments.storage import codec_data, codec_peers, shard_speed, storage_command
from imagesets import write_folder


def row(library, codec, ratio, decode, kind="text"):
    return {"kind": kind, "library": library, "codec": codec, "ratio": ratio, "encode": 1e6, "decode": decode}


def test_a_front_has_what_no_other_beats():
    rows = [row("zstd", "a", 2.0, 10), row("zstd", "b", 3.0, 5), row("zstd", "c", 1.9, 9)]
    assert [r["codec"] for r in codec_peers.front(rows)] == ["a", "b"]


@pytest.mark.parametrize("ratio, decode, match", [(2.0, 100, "x"), (2.1, 100, "x"), (2.2, 100, None), (2.0, 110, None)])
def test_a_match_is_at_most_a_twentieth_behind(ratio, decode, match):
    found = codec_peers.matches(row("zstd", "a", ratio, decode), [row("drapps", "x", 2.0, 100)])
    assert (found["codec"] if found else None) == match


def test_kinds_that_are_not_there_are_left_out(tmp_path):
    (tmp_path / "book.txt").write_text("call me " * 100)
    (tmp_path / "table.csv").write_text("a,b,name\n1,2.5,x\n3,NA,y\n")
    assert codec_data.write(tmp_path, tmp_path) == ["text", "sensors"]
    np.testing.assert_array_equal(np.load(tmp_path / "sensors.npy"), [1, 3, 2.5, np.nan])


def test_shards_beside_files(tmp_path, monkeypatch, capsys):
    write_folder(tmp_path / "set", 24)
    monkeypatch.setattr(shard_speed, "SMALL_FILES", 40)
    storage_command.main(["shards", "--data", str(tmp_path / "set"), "--rounds", "1", "--epochs", "2"])
    out = capsys.readouterr().out
    assert "small files, 1 ms an open" in out and "bytes on disk" in out
