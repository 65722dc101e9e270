"""Files that are written as a whole, or not at all."""

import os
import resource
from contextlib import contextmanager

import pytest

from drapps import cli
from drapps.atomic_write import write_atomic


@contextmanager
def full_disk(n_bytes=1000):
    """No file gets larger."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_was_there_is_replaced(tmp_path):
    path = tmp_path / "page"
    for text in (b"first", b"second"):
        write_atomic(path, text)
        assert path.read_bytes() == text
    assert os.listdir(tmp_path) == ["page"]


def test_what_was_there_stays_where_the_disk_is_full(tmp_path):
    path = tmp_path / "page"
    path.write_bytes(b"before")
    with full_disk(), pytest.raises(OSError) as caught:
        write_atomic(path, bytes(5000))
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == ["page"]


def test_links_and_devices(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "page")
    write_atomic(tmp_path / "link", b"text")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "page").read_bytes() == b"text"
    write_atomic("/dev/null", b"text")
    with pytest.raises(IsADirectoryError) as caught:
        write_atomic(tmp_path, b"text")
    assert caught.value.filename == str(tmp_path)


@pytest.mark.parametrize("command", [["report"], ["trace", "export"]])
def test_commands_name_the_file(command, pipe, tmp_path, capsys):
    with pipe.loader(batch_size=4, workers=1, output="numpy", trace=tmp_path / "run.drtrace") as loader:
        list(loader)
    out = tmp_path / "out"
    out.write_text("before")
    with full_disk():
        status = cli.main([*command, str(tmp_path / "run.drtrace"), "-o", str(out)])
    assert status == 1 and str(out) in capsys.readouterr().err and out.read_text() == "before"
