"""DRAPPSLoader: settings from files, steps from lists, and what is said about mistakes in them."""

import json
from pathlib import Path

import numpy
import pytest
import torch
from loadersets import Numbers, Stream

import drapps

EXAMPLES = Path(__file__).parents[2] / "examples"

TOML = """
[loader]
shuffle = false
num_workers = 0
[limits]
memory = 100_000_000
[weights]
preset = "draadp"
idle = 0.25
[policy]
name = "rules"
"""


def written(folder, text, name="settings.toml"):
    (folder / name).write_text(text)
    return folder / name


def double(sample):
    return sample * 2


def test_a_file_and_a_dict_say_the_same(tmp_path):
    as_dict = {"loader": {"shuffle": False, "num_workers": 0}, "limits": {"memory": 100_000_000},
               "weights": {"preset": "draadp", "idle": 0.25}, "policy": {"name": "rules"}}  # fmt: skip
    configs = [written(tmp_path, TOML), written(tmp_path, json.dumps(as_dict), "settings.json"), as_dict]
    for config in configs:
        loader = drapps.DRAPPSLoader(Numbers(10), 4, config)
        assert torch.cat(list(loader)).tolist() == list(range(10)) and len(loader) == 3
        assert (loader.policy, loader.weights, loader.memory_limit) == ("rules", "draadp,idle=0.25", 100_000_000)


def test_steps_of_a_data_set_of_torch(tmp_path):
    loader = drapps.DRAPPSLoader(Numbers(6), 3, {"loader": {"num_workers": 1}}, steps=[double, double])
    assert torch.cat(list(loader)).tolist() == [0, 4, 8, 12, 16, 20]
    loader.close()


@pytest.mark.parametrize("kind", ["torch", "pipeline"])
def test_a_cache_and_its_limit(folder, tmp_path, kind):
    dataset = Numbers(4) if kind == "torch" else drapps.read(folder).decode().resize((8, 8))
    config = {"loader": {"cache": str(tmp_path / "kept"), "cache_limit": 50_000_000, "num_workers": 1}}
    with drapps.DRAPPSLoader(dataset, 2, config) as loader:
        if kind == "torch":
            assert loader.cache_limit == 50_000_000
        else:
            assert loader.stats()["cache_limit_bytes"] == 50_000_000


def test_steps_of_a_folder(folder):
    config = {"loader": {"num_workers": 1}, "steps": [{"op": "resize", "size": [8, 8]}]}
    with drapps.DRAPPSLoader(
        folder, 4, config, steps=["random_horizontal_flip", drapps.ops.random_vertical_flip()]
    ) as loader:
        images, labels = next(iter(loader))
    expected = drapps.read(folder).decode().resize((8, 8)).random_horizontal_flip().random_vertical_flip()
    with expected.loader(batch_size=4) as other:
        assert numpy.array_equal(images, next(iter(other))[0]) and len(labels) == 4


def test_a_policy_file(tmp_path):
    path = written(tmp_path, 'policy = "climb"\n[weights]\nenergy = 0.5\n[limits]\ncpu = 1\n', "policy.toml")
    loader = drapps.DRAPPSLoader(Numbers(4), 2, {"policy": {"name": "rules"}}, None, path)
    assert (loader.policy, loader.weights, loader.cpu_limit) == ("climb", "energy=0.5", 1)


def test_the_example_can_be_used():
    loader = drapps.DRAPPSLoader(Numbers(64), 8, EXAMPLES / "loader.toml", policy_path=EXAMPLES / "policy.toml")
    assert sorted(torch.cat(list(loader)).tolist()) == list(range(64))
    loader.close()


@pytest.mark.parametrize(("text", "said"), [
    ("[loader]\nnum_worker = 3", r"settings.toml: loader: key must be one of .*num_workers.*, got 'num_worker'"),
    ("[loader]\nnum_workers = 'two'", r"loader.num_workers must be an int from 0 to 256, got 'two'"),
    ("[loader]\non_bad_sample = 'cry'", r"on_bad_sample must be one of 'raise', 'skip', 'replace', got 'cry'"),
    ("[loaders]\n", r"section must be one of loader, .*, got 'loaders'"),
    ("[limits]\ncpu = -1", r"limits.cpu must be a number of at least 0, got -1"),
    ("[limits]\ncpu = 1e-9", r"settings.toml: limits.cpu must be a number from 0.01 to 512, got 1e-09"),
    ("[loader]\nnum_workers = 257", r"settings.toml: loader.num_workers must be an int from 0 to 256, got 257"),
    ("[loader]\ncache_limit = -1", r"settings.toml: loader.cache_limit must be an int of at least 0, got -1"),
    ("[limits]\nmemory = true", r"limits.memory must be an int of at least 0, got True"),
    ("[weights]\nbeauty = 1", r"settings.toml: weights: term must be .* got .beauty"),
    ("[policy]\nname = 'magic'", r"settings.toml: policy.name must be one of .*'analytic'.*, got 'magic'"),
    ("[steps]\nop = 'resize'", r"settings.toml: steps must be a list of tables, \[\[steps\]\], got \{'op': 'resize'\}"),
    ("steps = [{size = 3}]",
     r"settings.toml: each step must be a table with op = the name of an op, got \{'size': 3\}"),
    ("[[steps]]\nop = 'resize'", r"settings.toml: step \('resize', \{\}\): a data set of torch takes callables"),
])  # fmt: skip
def test_mistakes_are_named(tmp_path, text, said):
    with pytest.raises(drapps.ArgumentError, match=said):
        drapps.DRAPPSLoader(Numbers(4), 2, written(tmp_path, text))


def test_an_op_of_the_config_that_is_none_is_named(folder, tmp_path):
    with pytest.raises(drapps.ArgumentError, match=r"settings.toml: step must be the name of an op, got 'sharpen_up'"):
        drapps.DRAPPSLoader(folder, 2, written(tmp_path, "[[steps]]\nop = 'sharpen_up'"))


def test_what_is_wrong_elsewhere_is_not_said_of_the_config(folder, tmp_path, monkeypatch):
    config = written(tmp_path, "[loader]\nshuffle = true\n")
    with pytest.raises(drapps.ArgumentError, match="^batch_size"):
        drapps.DRAPPSLoader(folder, 0, config)
    for data, step, text in ((folder, "sharpen_up", "step must be"), (Numbers(4), "resize", "step 'resize'")):
        with pytest.raises(drapps.ArgumentError, match=f"^{text}"):
            drapps.DRAPPSLoader(data, 2, config, steps=[step])
    monkeypatch.setenv("DRAPPS_POLICY", "magic")
    with pytest.raises(drapps.ArgumentError, match="^DRAPPS_POLICY"):
        drapps.DRAPPSLoader(Numbers(4), 2, config)


@pytest.mark.parametrize("steps", ["resize", double, {"op": "resize"}])
def test_steps_are_a_list(steps):
    with pytest.raises(drapps.ArgumentError, match="steps must be a list of steps, got"):
        drapps.DRAPPSLoader(Numbers(6), 2, steps=steps)


def test_steps_need_samples_by_their_number():
    with pytest.raises(drapps.ArgumentError, match="steps need a data set with __getitem__, not an iterable one"):
        drapps.DRAPPSLoader(Stream(4), 2, steps=[float])


def test_an_op_that_is_none_is_named(folder):
    with pytest.raises(drapps.ArgumentError, match="step must be the name of an op, got 'sharpen_up'; there are"):
        drapps.DRAPPSLoader(folder, 2, steps=["sharpen_up"])


@pytest.mark.parametrize(("name", "content"), [("p.toml", b"\x93NUMPY\x01\x00"), ("p.json", b"[1, 2"),
                                               ("p.json", b"[1]")])
def test_files_that_are_none_are_named(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(drapps.FormatError, match=name):
        drapps.DRAPPSLoader(Numbers(4), 2, policy_path=tmp_path / name)


def test_a_policy_file_names_a_policy(tmp_path):
    with pytest.raises(drapps.ArgumentError, match=r"p.toml: policy must be one of .*'analytic'.*, got None"):
        drapps.DRAPPSLoader(Numbers(4), 2, policy_path=written(tmp_path, "", "p.toml"))


def test_a_policy_file_may_switch_it_off(tmp_path):
    with drapps.DRAPPSLoader(Numbers(4), 2, policy_path=written(tmp_path, "policy = 'off'", "p.toml")) as loader:
        assert loader.stats()["policy"] == "fixed"


def test_a_config_that_is_none_is_named():
    with pytest.raises(drapps.ArgumentError, match="config must be a path, a dict or None, got 5"):
        drapps.DRAPPSLoader(Numbers(4), 2, 5)


@pytest.mark.parametrize("kind", ["torch", "pipeline"])
def test_no_limit_of_cpus_is_said_by_0(folder, kind):
    dataset = torch.arange(8) if kind == "torch" else drapps.read(folder).decode().resize((8, 8))
    with drapps.DRAPPSLoader(dataset, 4, {"limits": {"cpu": 0}}) as loader:
        assert len(next(iter(loader))) > 0
