"""drapps.gym: Gymnasium's checks, seeds, vectors of environments, masks."""

import subprocess
import sys
import warnings

import pytest

gymnasium = pytest.importorskip("gymnasium")

import numpy as np  # noqa: E402

import drapps  # noqa: E402
import drapps.gym  # noqa: E402
from drapps import sim  # noqa: E402


@pytest.mark.parametrize("base", [None, "analytic"])
def test_gymnasiums_own_checks(base):
    from gymnasium.utils.env_checker import check_env

    env = gymnasium.make("drapps/Loader-v0", scenario="bursts", machine="any", seconds=8, base=base)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


def episode(env, seed, actions):
    observation, _ = env.reset(seed=seed)
    seen, rewards, over = [observation], [], False
    dice = np.random.default_rng(actions)
    while not over:
        action = drapps.gym.keep_all() if actions is None else dice.integers(env.action_space.nvec)
        observation, reward, terminated, over, info = env.step(action)
        assert env.observation_space.contains(observation) and not terminated
        seen.append(observation)
        rewards.append(reward)
    return np.array(seen), np.array(rewards), info["result"]


def test_the_seed_decides_the_episode():
    env = drapps.gym.LoaderEnv(scenario="steps", machine="any", seconds=15)
    first, again, other = episode(env, 3, 1), episode(env, 3, 1), episode(env, 4, 1)
    assert np.array_equal(first[0], again[0]) and np.array_equal(first[1], again[1]) and first[2] == again[2]
    assert len(first[1]) == 15 and not np.array_equal(first[0], other[0])
    assert first[2]["seconds"] == pytest.approx(16)  # the first is before the first observation


def test_blocks_of_the_observation_move():
    """Machine, queues, model and knobs: each block of the state changes in an episode."""
    env = drapps.gym.LoaderEnv(scenario="periodic", machine="a100x8", set="demand=0.5", seconds=40)
    seen, _, _ = episode(env, 1, 2)
    moving = {name for name, by in zip(drapps.gym.observation_names(), seen.std(axis=0)) if by > 0}
    for block in (
        {"cpu_total", "cpu_workers", "cpu_foreign", "power", "gpu_busy"},
        {"ready", "open", "busy", "latency", "cover"},
        {"wait", "wait_30s", "served", "load", "foreign_moved"},
        {"knob_workers", "knob_readers", "knob_prefetch"},
    ):
        assert block <= moving


def test_base_policy_without_changes_is_that_policy():
    env = drapps.gym.LoaderEnv(scenario="stationary", machine="rtx3090x4", set={"workers": 1}, base="analytic")
    alone = drapps.gym.LoaderEnv(scenario="stationary", machine="rtx3090x4", set={"workers": 1})
    assert episode(env, 1, None)[1].mean() > episode(alone, 1, None)[1].mean() + 0.1


def test_masks():
    env = drapps.gym.LoaderEnv(scenario="plain", set="workers=1")
    _, info = env.reset(seed=1)
    mask = info["action_mask"]
    assert mask.shape == (env.action_space.nvec.sum(),) and mask.dtype == bool
    assert not mask[0] and mask[2]  # fewer workers than one; "keep"


def test_vectors_are_their_parts():
    names = dict(scenario="bursts", machine="any", seconds=10)
    envs = drapps.gym.LoaderVectorEnv(3, **names)
    observation, _ = envs.reset(seed=[5, 6, 7])
    assert observation.shape == (3, len(drapps.gym.observation_names()))
    assert envs.observation_space.contains(observation)
    assert len({row.tobytes() for row in observation}) == 3
    again, _ = drapps.gym.LoaderVectorEnv(3, **names).reset(seed=[5, 6, 7])
    assert np.array_equal(observation, again)
    keep = np.tile(drapps.gym.keep_all(), (3, 1))
    for step in range(1, 11):
        observation, reward, terminated, truncated, _ = envs.step(keep)
        assert reward.shape == (3,) and not terminated.any() and truncated.all() == (step == 10)
    after, reward, _, truncated, _ = envs.step(keep)  # begins the next episode
    assert not reward.any() and not truncated.any() and not np.array_equal(after, observation)


def test_vector_by_name():
    envs = gymnasium.make_vec("drapps/Loader-v0", num_envs=2, vectorization_mode="vector_entry_point")
    assert envs.reset(seed=1)[0].shape[0] == 2
    assert envs.unwrapped.action_masks().shape == (2, sum(map(len, drapps.gym.action_choices().values())))


def test_wrong_arguments():
    with pytest.raises(drapps.ArgumentError, match="scenario must be one of"):
        drapps.gym.LoaderEnv(scenario="war")
    with pytest.raises(drapps.ArgumentError, match="genius"):
        drapps.gym.LoaderEnv(base="genius")
    with pytest.raises(drapps.ArgumentError, match="seconds"):
        drapps.gym.LoaderEnv(seconds=0)
    with pytest.raises(drapps.ArgumentError, match="n must be 1"):
        drapps.gym.LoaderVectorEnv(0)
    with pytest.raises(drapps.ArgumentError, match="seed must have 2 entries"):
        drapps.gym.LoaderVectorEnv(2).reset(seed=[1, 2, 3])


def test_without_gymnasium():
    """The message says what to install."""
    program = "import sys; sys.modules['gymnasium'] = None\nimport drapps.sim\nimport drapps.gym"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "drapps.gym needs gymnasium and numpy: pip install gymnasium" in done.stderr


def test_an_agent_of_random_search_learns():
    """Rewards say what is good: of constant actions, more workers win where one is too few."""
    env = drapps.gym.LoaderEnv(scenario="plain", machine="rtx3090x4", set="workers=1,demand=0.8", seconds=20)

    def of(first):
        env.reset(seed=1)
        action = drapps.gym.keep_all()
        action[0] = first
        return sum(env.step(action)[1] for _ in range(20))

    assert of(4) > of(3) > of(2)
    assert sim.Simulation(machine="rtx3090x4", scenario="plain", set="workers=1,demand=0.8").run("fixed").wait > 0.5
