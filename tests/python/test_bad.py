"""Bad samples: a truncated JPEG is named, left out, replaced, counted, and told through logging."""

import logging

import pytest
from imagesets import write_folder

import drapps

BAD = "bee/004.jpg"


@pytest.fixture
def damaged(tmp_path):
    """A folder in which one JPEG ends early and one is empty."""
    root = write_folder(tmp_path / "set", n=12)
    path = root / BAD
    path.write_bytes(path.read_bytes()[:300])
    return root


def loader(root, **options):
    pipe = drapps.read(root).decode().resize((16, 16))
    return pipe.loader(batch_size=4, output="numpy", **options)


@pytest.fixture(params=[0, 2])
def workers(request):
    return request.param


def test_raise_names_the_file(damaged, workers):
    with pytest.raises(drapps.Error, match="004.jpg"):
        list(loader(damaged, workers=workers))


def test_raise_keeps_the_place(damaged):
    """After the error the state is at the failed batch."""
    failing = loader(damaged)
    good = 0
    with pytest.raises(drapps.Error):
        for _ in failing:
            good += 1
    skipping = loader(damaged, on_bad_sample="skip")
    sizes = [batch.samples for batch in skipping.batches()]
    assert sizes[good] == 3
    assert failing.state_dict()["running"]


def test_skip(damaged, workers, caplog):
    with caplog.at_level(logging.WARNING, "drapps"):
        batches = list(loader(damaged, on_bad_sample="skip", workers=workers).batches())
    assert sorted(batch.samples for batch in batches) == [3, 4, 4]
    (bad,) = sum((batch.bad for batch in batches), [])
    assert bad["key"] == BAD and "004.jpg" in bad["error"]
    assert bad["id"] not in sum((batch.ids for batch in batches), [])
    assert len(caplog.records) == 1 and BAD in caplog.text


def test_replace(damaged, workers):
    batches = list(loader(damaged, on_bad_sample="replace", workers=workers).batches())
    assert [batch.samples for batch in batches] == [4, 4, 4]
    (bad,) = sum((batch.bad for batch in batches), [])
    ids = sum((batch.ids for batch in batches), [])
    assert bad["key"] == BAD and bad["id"] not in ids and len(ids) == 12


def test_limit(damaged):
    with pytest.raises(drapps.BadSampleError):
        list(loader(damaged, on_bad_sample="skip", max_bad=0))
    assert len(list(loader(damaged, on_bad_sample="skip", max_bad=1))) == 3


def test_nothing_is_printed(damaged, capfd):
    logging.getLogger("drapps").addHandler(logging.NullHandler())
    list(loader(damaged, on_bad_sample="skip"))
    assert capfd.readouterr() == ("", "")


def test_a_sample_beyond_the_memory_limit_is_not_read(damaged, workers):
    """A JPEG with nothing behind it but a hole: no worker reads more than a quarter of the limit, or 64 MB."""
    large = damaged / "bee" / "004.jpg"
    with large.open("r+b") as file:
        file.truncate(600 << 20)
    batches = list(loader(damaged, on_bad_sample="skip", workers=workers, memory_limit=512 << 20).batches())
    (bad,) = sum((batch.bad for batch in batches), [])
    assert bad["key"] == BAD
    assert "004.jpg: a sample of 629145" in bad["error"]
    assert "encoded bytes; the memory limit allows 134217728" in bad["error"]
