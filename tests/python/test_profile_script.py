"""drapps profile of programs: their loaders are watched, their ends passed on, their samples all delivered."""

import json
import signal
import subprocess
import sys
import textwrap
import time
from importlib.util import find_spec

import pytest

from drapps.profile.rules import NAMES
from drapps.profile.session import Tally

LOADER = """
    import sys, time
    import drapps
    pipe = drapps.read(sys.argv[1]).decode().resize(32).center_crop(32)
    loader = pipe.loader(batch_size=4, shuffle=True, workers=2, outputs="image", output="numpy", seek_index="memory")
"""
ENDLESS = """
    while True:
        for batch in loader:
            time.sleep(0.005)
"""


def test_a_consumer_that_got_full_batches_again_would_not_always_get_such():
    free = Tally("free", 1.0)
    for _ in range(4):
        free.add(0.0, 0.01, 32)
    assert free.rate == pytest.approx(3200)
    assert free.rate_of(24) == pytest.approx(2400)  # every second batch of the run has 16
    assert Tally("free", 1.0).rate is None and Tally("free", 1.0).rate_of(24) is None


def write(tmp_path, *parts):
    script = tmp_path / "train.py"
    script.write_text("".join(map(textwrap.dedent, parts)))
    return script


def command(script, *args, seconds=1.5):
    words = [sys.executable, "-m", "drapps.cli", "profile", script, "--seconds", seconds, "--json", "--", *args]
    return list(map(str, words))


def run(words):
    return subprocess.run(words, capture_output=True, text=True, timeout=120)


def profile(tmp_path, parts, *args, **options):
    return run(command(write(tmp_path, *parts), *args, **options))


def found(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_program_is_ended_when_enough_is_known(tmp_path, folder):
    said = found(profile(tmp_path, [LOADER, ENDLESS], folder))
    facts = said["facts"]
    assert said["verdict"] in NAMES and said["verdict"] == said["findings"][0]["name"]
    assert facts["workers"] == 2 and facts["batches"] > 0 and facts["step"] >= 0.005
    assert facts["free_rate"] > 0 and facts["drain_rate"] > 0 and facts["alone"] > 0 and "decode" in facts["ops"]
    assert [note for note in facts["notes"] if "load changed" not in note] == []


def test_for_people(tmp_path, folder):
    words = [word for word in command(write(tmp_path, LOADER, ENDLESS), folder) if word != "--json"]
    done = run(words)
    assert "samples/s" in done.stdout and "finding" in done.stdout and "twice" in done.stdout


def test_finally_runs_and_the_rest_does_not(tmp_path, folder):
    source = """
        try:
            while True:
                for batch in loader:
                    pass
        finally:
            print("tidied", flush=True)
        print("went on", flush=True)
    """
    done = profile(tmp_path, [LOADER, source], folder)
    assert "tidied" in done.stderr and "went on" not in done.stderr
    found(done)


def test_no_sample_is_lost(tmp_path, folder):
    source = """
        begun = time.monotonic()
        while time.monotonic() < begun + 4:
            seen = set()
            for batch in loader.batches():
                seen.update(batch.ids)
                time.sleep(0.002)
            assert seen == set(range(len(pipe))), seen
        print("all", flush=True)
    """
    words = command(write(tmp_path, LOADER, source), folder)
    words.insert(words.index("--json"), "--keep-running")
    done = run(words)
    assert "all" in done.stderr, done.stderr
    assert found(done)["facts"]["free_rate"] > 0


def test_a_program_that_ends_early(tmp_path, folder):
    said = found(profile(tmp_path, [LOADER, "list(loader)"], folder, seconds=60))
    assert said["verdict"] is None and said["facts"]["batches"] == 0


def test_batches_come_twice_only_where_the_free_phase_was_reached(tmp_path, folder):
    words = command(write(tmp_path, LOADER, "list(loader)"), folder, seconds=60)
    assert "twice" not in run([word for word in words if word != "--json"]).stdout


def test_the_error_of_a_program(tmp_path, folder):
    source = """
        for batch in loader:
            raise LookupError("of the user")
    """
    done = profile(tmp_path, [LOADER, source], folder)
    assert done.returncode == 1 and "LookupError: of the user" in done.stderr and "train.py" in done.stderr
    assert "runpy" not in done.stderr and "script.py" not in done.stderr  # as Python prints it


def test_a_program_that_python_cannot_read(tmp_path):
    done = profile(tmp_path, ["def f(:\n"])
    assert done.returncode == 1 and done.stderr.lstrip().startswith("File") and "Traceback" not in done.stderr


@pytest.mark.parametrize("end, status", [("sys.exit(7)", 7), ("sys.exit('why')", 1), ("sys.exit()", 0)])
def test_the_exit_status_of_a_program(tmp_path, folder, end, status):
    done = profile(tmp_path, [LOADER, f"list(loader); {end}"], folder, seconds=60)
    assert done.returncode == status and ("why\n" in done.stderr) == ("why" in end)


def test_an_interrupt(tmp_path, folder):
    script = write(tmp_path, LOADER, "print('begun', flush=True)\n", ENDLESS)
    child = subprocess.Popen(command(script, folder, seconds=60), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)  # fmt: skip
    assert child.stderr.readline() == "begun\n"
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130 and "Traceback" not in err and json.loads(out)["loader"]


def test_a_program_without_a_loader(tmp_path):
    done = profile(tmp_path, ["import sys\nprint(sys.argv[1:], __name__)\n"], "--lr", "1")
    assert done.returncode == 1 and "iterated no loader" in done.stderr
    assert "['--lr', '1'] __main__" in done.stderr


def test_a_loader_for_each_epoch(tmp_path, folder):
    source = """
        while True:
            for batch in pipe.loader(batch_size=4, outputs="image", output="raw", workers=2):
                time.sleep(0.005)
    """
    assert found(profile(tmp_path, [LOADER, source], folder))["facts"]["free_rate"] > 0


def test_python_functions(tmp_path, folder):
    source = """
        import sys, time
        import drapps

        def slow(image):
            time.sleep(0.01)
            return image

        pipe = drapps.read(sys.argv[1]).decode().resize(32).center_crop(32).map(slow, field="image")
        loader = pipe.loader(batch_size=4, workers=2, outputs="image", output="numpy")
        while True:
            for batch in loader:
                pass
    """
    facts = found(profile(tmp_path, [source], folder))["facts"]
    assert facts["alone"] >= 0.01 and max(facts["ops"], key=facts["ops"].get) == "map(slow)"


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_set_of_torch(tmp_path, workers):
    source = f"""
        import time
        import torch
        from drapps import DataLoader

        class Slow(torch.utils.data.Dataset):
            def __len__(self):
                return 64

            def __getitem__(self, i):
                time.sleep(0.005)
                return torch.zeros(3), i

        if __name__ == "__main__":
            while True:
                for x, y in DataLoader(Slow(), batch_size=4, num_workers={workers}):
                    assert len(x) == 4
    """
    said = found(profile(tmp_path, [source]))
    assert said["facts"]["alone"] >= 0.005 and said["facts"]["blocked"] >= 0.004
    assert set(said["facts"]["ops"]) == {"Slow.__getitem__", "default_collate"}
    assert said["facts"]["ops"]["Slow.__getitem__"] > 0.9
    assert said["facts"]["blocked_in"].startswith("Slow.__getitem__ (")


@pytest.mark.skipif(find_spec("torchvision") is None, reason="needs torchvision")
def test_a_native_data_set_of_torch(tmp_path, folder):
    source = """
        import sys, time
        from drapps.bench.standins import import_torchvision
        import_torchvision()
        from torchvision import datasets, transforms
        from drapps import DataLoader
        chain = transforms.Compose([transforms.Resize((32, 32)), transforms.ToTensor()])
        loader = DataLoader(datasets.ImageFolder(sys.argv[1], chain), batch_size=4, num_workers=2)
        assert "nativ" in loader.explain(), loader.explain()
        while True:
            for x, y in loader:
                time.sleep(0.002)
    """
    facts = found(profile(tmp_path, [source], folder))["facts"]
    assert facts["drain_rate"] > 0 and facts["workers"] == 2 and "decode" in facts["ops"]


TORCHS = """
    import sys, time
    from drapps.bench.standins import import_torchvision
    import_torchvision()
    from torchvision import datasets, transforms
    from torch.utils.data import DataLoader
    chain = transforms.Compose([transforms.Resize((32, 32)), transforms.ToTensor()])
    loader = DataLoader(datasets.ImageFolder(sys.argv[1], chain), 4, shuffle=True, num_workers=2)
    while True:
        for x, y in loader:
            assert type(loader) is DataLoader and len(x) <= 4
"""


@pytest.mark.skipif(find_spec("torchvision") is None, reason="needs torchvision")
def test_torchs_own_loader_and_drapps_in_its_place(tmp_path, folder):
    words = command(write(tmp_path, TORCHS), folder)
    said = found(run(words))
    facts = said["facts"]
    assert facts["swapped_rate"] > 0 and facts["swapped_native"] and "DataLoader" in said["loader"]
    assert facts["workers"] == 2 and facts["alone"] > 0 and "Resize" in facts["ops"]
    assert facts["consumer_rate"] >= max(facts["rate"], facts["swapped_rate"])
    shown = run([word for word in words if word != "--json"]).stdout
    assert "with drapps.DataLoader instead of torch's:" in shown and "twice" in shown


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
@pytest.mark.parametrize("dataset, said", [
    ("Numbers()", ""),
    ("Counted()", ""),
    ("Fussy()", "drapps.DataLoader was not measured in its place: LookupError: not this one"),
])  # fmt: skip
def test_a_data_set_in_torchs_loader(tmp_path, dataset, said):
    source = f"""
        import sys, time
        import torch
        from torch.utils.data import DataLoader, Dataset, IterableDataset

        class Numbers(Dataset):
            def __len__(self):
                return 64

            def __getitem__(self, i):
                return torch.tensor(i)

        class Counted(IterableDataset):
            def __iter__(self):
                return iter(map(torch.tensor, range(64)))

        class Fussy(Numbers):
            asked = 0

            def __getitem__(self, i):
                self.asked += "drapps.torch.dataloader" in sys.modules
                if self.asked == 1:
                    raise LookupError("not this one")
                return torch.tensor(i)

        loader = DataLoader({dataset}, 4, num_workers=0)
        while True:
            for x in loader:
                time.sleep(0.001)
    """
    facts = found(profile(tmp_path, [source]))["facts"]
    assert [note for note in facts["notes"] if "load changed" not in note] == ([said] if said else [])
    assert ("swapped_rate" in facts) == (not said)


def test_a_loop_over_data(folder):
    words = [sys.executable, "-m", "drapps.cli", "profile", folder, "--seconds", "1.5", "--batch-size", "4", "--json"]
    said = json.loads(run([*map(str, words), "--step-ms", "5"]).stdout)
    assert said["samples"] and said["analysis"]["verdict"] in NAMES and said["analysis"]["facts"]["step"] >= 0.005


def test_imports_nothing_that_the_program_does_not(tmp_path, folder):
    parts = [LOADER, "list(loader); print('torch' in sys.modules, flush=True)"]
    assert profile(tmp_path, parts, folder, seconds=60).stderr.startswith("False")
