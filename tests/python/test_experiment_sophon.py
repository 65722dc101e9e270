"""drapps experiment sophon: every policy delivers the same batches over a slow link; sets of given sizes."""

import random
import statistics

import pytest
from imagesets import write_folder

from benchmarks.experiments.sophon import sophon_command, twins
from benchmarks.experiments.testbed import testbed

REASON = testbed.missing()


@pytest.mark.skipif(REASON is not None, reason=str(REASON))
def test_epochs_of_policies(tmp_path, capfd):
    write_folder(tmp_path / "set", 24)
    sophon_command.main(["epochs", "--data", str(tmp_path / "set"), "--quotas", "0", "1", "--policies", "off", "all",
                         "sophon+", "--epochs", "2", "--rate", "50"])  # fmt: skip
    rows = [line.split() for line in capfd.readouterr().out.splitlines()]
    assert {(row[0], row[1]) for row in rows if len(row) == 7 and row[0] in "01"} == {
        ("0", "off"), ("1", "off"), ("1", "all"), ("1", "sophon+")}  # fmt: skip


def test_a_twin_has_the_sizes_that_were_drawn(tmp_path):
    write_folder(tmp_path / "set", 4, size=(300, 400))
    folder = twins.open_images_twin(tmp_path / "set", tmp_path / "twin", 6)
    sizes = [(folder / f"class-{i}" / f"{i:05d}.jpg").stat().st_size for i in range(6)]
    draw = random.Random(0)
    drawn = [draw.lognormvariate(twins.np.log(twins.MEDIAN_BYTES), twins.SIGMA) for _ in range(6)]
    assert statistics.median(abs(size / target - 1) for size, target in zip(sizes, drawn)) < 0.1


def test_a_set_is_repeated(tmp_path):
    write_folder(tmp_path / "set", 5)
    size = sum(path.stat().st_size for path in twins.jpegs(tmp_path / "set"))
    folder = twins.repeated(tmp_path / "set", tmp_path / "more", 3 * size + 1)
    assert len(twins.jpegs(folder)) == 16


def test_a_folder_without_images_is_named(tmp_path):
    with pytest.raises(SystemExit, match="no JPEG files"):
        twins.jpegs(tmp_path)
