"""take, skip, select, split, concat and single samples: the same samples, the same draws, the same states."""

import threading

import numpy
import pytest

import drapps

N = 20


@pytest.fixture(scope="module")
def source():
    images = numpy.random.default_rng(0).integers(0, 256, (N, 12, 12, 3), dtype="uint8")
    return drapps.from_arrays(image=images, label=numpy.arange(N))


@pytest.fixture(scope="module")
def chain(source):
    """Draws for each sample."""
    return source.random_resized_crop(8).random_horizontal_flip()


def shift(sample):
    """Draws from NumPy's generator, which is seeded for each sample."""
    return {**sample, "image": sample["image"] + numpy.random.randint(0, 9)}


def loaded(pipe, **options):
    """{label: image} of an epoch in its order, and the labels in a list (some may come twice)."""
    images, labels = {}, []
    with pipe.loader(batch_size=4, output="numpy", **options) as loader:
        for batch in loader:
            for image, label in zip(*batch, strict=True):
                images[int(label)] = image.copy()
                labels.append(int(label))
    return images, labels


SELECTIONS = {
    "take": (lambda p: p.take(5), range(5)),
    "take more than there are": (lambda p: p.take(99), range(N)),
    "skip": (lambda p: p.skip(15), range(15, N)),
    "slice": (lambda p: p[3:15:4], range(3, 15, 4)),
    "backwards": (lambda p: p[::-6], range(N)[::-6]),
    "select": (lambda p: p.select([7, 0, -1]), [7, 0, 19]),
    "select range": (lambda p: p.select(range(2, 8, 3)), [2, 5]),
    "select array": (lambda p: p.select(numpy.array([4, 2], "uint8")), [4, 2]),
    "select bools": (lambda p: p.select(numpy.arange(N) % 7 == 3), [3, 10, 17]),
    "of a selection": (lambda p: p.select([9, 8, 7, 6]).skip(1)[::-1].take(2), [6, 7]),
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", SELECTIONS)
def test_samples_keep_their_draws(chain, name, workers):
    select, labels = SELECTIONS[name]
    whole, _ = loaded(chain, workers=workers)
    some, got = loaded(select(chain), workers=workers)
    assert got == list(labels) and len(select(chain)) == len(labels)
    assert all((some[label] == whole[label]).all() for label in labels)


@pytest.mark.parametrize("name", SELECTIONS)
def test_selecting_before_ops_is_the_same(source, chain, name):
    select, _ = SELECTIONS[name]
    before, _ = loaded(select(source).random_resized_crop(8).random_horizontal_flip())
    after, _ = loaded(select(chain))
    assert before.keys() == after.keys() and all((before[k] == after[k]).all() for k in before)


def test_chains_with_functions(chain):
    pipe = chain.map(shift)
    whole, _ = loaded(pipe, workers=0)
    some, labels = loaded(pipe.select([3, 18, 5]), workers=2)
    assert labels == [3, 18, 5] and all((some[k] == whole[k]).all() for k in labels)
    kept, labels = loaded(pipe.take(10).filter(lambda label: label % 2, field="label"), workers=0)
    assert labels == [1, 3, 5, 7, 9]


def test_positions_after_a_filter_are_refused(chain):
    pipe = chain.filter(lambda label: label > 17, field="label")
    for what in (lambda: pipe.take(1), lambda: pipe.skip(1), lambda: pipe.select([0]), lambda: pipe[0],
                 lambda: pipe[:1]):
        with pytest.raises(drapps.ArgumentError, match="filter"):
            what()
    assert [sample["label"] for sample in pipe] == [18, 19]
    parts = pipe.split([0.5, 0.5], seed=1)
    assert sorted(label for part in parts for label in loaded(part, workers=0)[1]) == [18, 19]


def test_shuffle_and_ranks_see_the_selection_alone(chain):
    pipe = chain.select([1, 3, 5, 7, 9, 11, 13])
    _, shuffled = loaded(pipe, shuffle=True, seed=3)
    assert sorted(shuffled) == [1, 3, 5, 7, 9, 11, 13] and shuffled != sorted(shuffled)
    ranks = [loaded(pipe, shuffle=True, seed=3, rank=rank, world_size=2)[1] for rank in range(2)]
    assert sorted(ranks[0] + ranks[1]) == sorted(shuffled)


def test_a_sample_named_twice_draws_anew(chain):
    with chain.select([6, 6]).loader(batch_size=2, output="numpy") as loader:
        ((first, second), labels) = next(iter(loader))
    assert list(labels) == [6, 6] and (first != second).any()


@pytest.mark.parametrize("functions", [False, True])
def test_states_belong_to_the_selection(chain, functions):
    def make(pipe):
        return (pipe.map(shift) if functions else pipe).loader(
            batch_size=4, shuffle=True, seed=1, workers=0, output="numpy"
        )

    with make(chain.skip(5)) as loader:
        rest = iter(loader)
        next(rest)
        state = loader.state_dict()
        want = [labels.tolist() for _, labels in rest]
    with make(chain[5:]) as loader:
        loader.load_state_dict(state)
        assert [labels.tolist() for _, labels in loader] == want
    for other in (chain.take(15), chain.select(list(range(19, 4, -1)))):
        with make(other) as loader, pytest.raises(drapps.ArgumentError, match="data"):
            loader.load_state_dict(state)


def test_what_takes_a_bad_samples_place_is_selected_too(tmp_path):
    from PIL import Image

    for i in range(30):
        (tmp_path / "c").mkdir(exist_ok=True)
        Image.new("RGB", (8, 8), (i, 0, 0)).save(tmp_path / f"c/{i:02}.png")
    (tmp_path / "c/03.png").write_bytes(b"nothing")
    for stage in (lambda pipe: pipe, lambda pipe: pipe.map(dict)):
        pipe = stage(drapps.read(tmp_path).decode().resize((8, 8))).take(5)
        for seed in range(6):
            with pipe.loader(batch_size=5, seed=seed, workers=0, on_bad_sample="replace") as loader:
                assert all(i < 5 for i in next(loader.batches()).ids)


def test_split_as_random_split(chain):
    for lengths, counts in (([0.9, 0.1], [18, 2]), ([0.33, 0.33, 0.34], [7, 7, 6]), ([15, 5], [15, 5]), ([1.0], [20])):
        parts = chain.split(lengths, seed=4)
        assert [len(part) for part in parts] == counts
        labels = [loaded(part)[1] for part in parts]
        assert sorted(sum(labels, [])) == list(range(N))
        assert [loaded(part)[1] for part in chain.split(lengths, seed=4)] == labels
        assert [loaded(part)[1] for part in chain.split(lengths, seed=5)] != labels
    whole, _ = loaded(chain)
    some, _ = loaded(chain.split([0.5, 0.5])[1])
    assert all((some[k] == whole[k]).all() for k in some)


def test_split_counts_are_torchs(source):
    torch = pytest.importorskip("torch")
    for lengths in ([0.9, 0.1], [0.5, 0.25, 0.25], [0.31, 0.32, 0.37], [0.7, 0.2, 0.1], [11, 9], [1.0]):
        want = [len(part) for part in torch.utils.data.random_split(range(N), lengths)]
        assert [len(part) for part in source.split(lengths)] == want


def test_concat(source, chain):
    both = chain.take(3) + chain.skip(18)
    images, labels = loaded(both)
    assert labels == [0, 1, 2, 18, 19] and len(both) == 5
    assert both.dataset.key(N + 18) == "18"
    assert len(chain.concat(chain, chain)) == 3 * N
    assert loaded(both.select([4, 0]))[1] == [19, 0]
    assert len(drapps.mix([source.take(4), source.skip(4)], weights=[3, 1], length=16)) == 16
    with pytest.raises(drapps.ArgumentError, match="different ops"):
        chain.concat(source)
    with pytest.raises(drapps.ArgumentError, match="label"):
        source + drapps.from_arrays(image=numpy.zeros((2, 12, 12, 3), "uint8"))
    with pytest.raises(TypeError):
        source + 1


def test_single_samples(chain):
    whole, _ = loaded(chain, layout="NHWC")
    for i in (0, 7, -1):
        sample = chain[i]
        assert sample["label"] == i % N and (sample["image"] == whole[i % N]).all()
    assert chain[1]["image"].tolist() != chain[0]["image"].tolist()  # the first is not overwritten
    assert [sample["label"] for sample in chain.take(3)] == [0, 1, 2]
    assert chain.map(shift)[5]["image"].shape == (8, 8, 3)
    for wrong in (N, -N - 1):
        with pytest.raises(IndexError, match=str(N)):
            chain[wrong]
    with pytest.raises(TypeError, match="select"):
        chain[[1, 2]]


def test_single_samples_in_threads(chain):
    want = [chain[i]["image"].tolist() for i in range(N)]
    got = {}

    def work(k):
        for i in range(N):
            got[k, i] = chain[i]["image"].tolist()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(got[k, i] == want[i] for k in range(4) for i in range(N))


@pytest.mark.parametrize("wrong", [-1, "3", 1.5, None, True])
def test_counts_are_checked(chain, wrong):
    for method in (chain.take, chain.skip):
        with pytest.raises(drapps.ArgumentError, match="non-negative int"):
            method(wrong)


@pytest.mark.parametrize("wrong", [[N], [-N - 1], [0.5], ["a"], 3, [[1]], [True, False],
                                   numpy.array([2**64 - 1], "uint64")])
def test_indices_are_checked(chain, wrong):
    with pytest.raises(drapps.ArgumentError, match="select"):
        chain.select(wrong)


@pytest.mark.parametrize("wrong", [[], [0.5, 0.4], [19], [30, -10], ["a"], [0.5, 19.5], 0.8])
def test_lengths_are_checked(chain, wrong):
    with pytest.raises(drapps.ArgumentError, match="split"):
        chain.split(wrong)


def test_an_empty_selection_has_no_loader(chain):
    assert len(chain.take(0)) == 0 and list(chain.skip(N)) == []
    for empty in (chain.take(0), chain.take(0).map(lambda sample: sample)):
        with pytest.raises(drapps.ArgumentError, match="no samples"):
            empty.loader(batch_size=1)


def test_ops_on_batches_have_no_single_samples(chain):
    with pytest.raises(drapps.ArgumentError, match=r"mixup works on whole batches: .* pipe\[i\]"):
        chain.to_dtype(scale=True).mixup(num_classes=3)[0]


def test_mixtures_have_no_selection(source):
    mixed = drapps.mix([source, source])
    with pytest.raises(drapps.UnsupportedError, match="mixture"):
        mixed.take(3)


def test_ten_million_samples():
    """No object and, but for the list itself, no memory for each of them."""
    import resource

    n = 10**7
    pipe = drapps.from_arrays(label=numpy.zeros(n, "int8"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    parts = pipe.split([0.9, 0.1], seed=0)
    few = parts[0].skip(10**6)[::3]
    assert len(few) == -(-8 * 10**6 // 3) and few[-1]["label"] == 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kB
    picked = pipe.select(numpy.arange(n)[::-1])
    assert len(picked) == n and picked.take(3)[2]["label"] == 0


def test_the_cache_is_shared(source, tmp_path):
    """What was kept of a sample serves every selection that has it."""
    pipe = source.resize(6)
    for selection, hits in ((pipe, 0), (pipe.take(8), 8), (pipe.select([3, 2]), 2)):
        with selection.loader(batch_size=4, cache=tmp_path / "kept", output="numpy") as loader:
            list(loader)
            assert loader.stats()["cache_hits"] == hits
