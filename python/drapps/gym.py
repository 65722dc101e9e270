"""Gymnasium environments over the simulator: train an agent that sets a loader's knobs.

    env = drapps.gym.LoaderEnv(scenario="periodic")
    envs = drapps.gym.LoaderVectorEnv(64, machine="any", scenario="tariff", base="analytic")

A step is a decision and the second after it.  An action has a choice for each knob: a step down, as it is, a step up.
With `base`, these steps are added to what that policy decides.  Needs the package gymnasium.
"""

import functools
import json
from collections.abc import Mapping
from typing import Any

from drapps import _core
from drapps.sched import check_policy, weights_text
from drapps.sim.simulation import Result, check_seconds, set_text

try:
    import gymnasium
    import numpy as np
    from gymnasium.vector.utils import batch_space
except ImportError as error:
    raise ImportError(f"drapps.gym needs gymnasium and numpy: pip install gymnasium ({error})") from error

LEAST, MOST = -4.0, 4.0  # of the numbers of an observation, as dr__features limits them


@functools.cache
def _tables() -> Any:
    return json.loads(_core.sim_env_json())


def observation_names() -> dict[str, str]:
    """Return {name: meaning} of the numbers of an observation, in order."""
    return {row["name"]: row["doc"] for row in _tables()["observation"]}


def action_choices() -> dict[str, list[str]]:
    """Return {knob: choices} of an action, in order."""
    return {row["name"]: row["choices"] for row in _tables()["actions"]}


def observation_space() -> gymnasium.spaces.Box:
    """Return the space of observations."""
    return gymnasium.spaces.Box(LEAST, MOST, (len(observation_names()),), np.float32)


def action_space() -> gymnasium.spaces.MultiDiscrete:
    """Return the space of actions."""
    return gymnasium.spaces.MultiDiscrete([len(choices) for choices in action_choices().values()])


def keep_all() -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the action that changes nothing."""
    return np.array([choices.index("keep") for choices in action_choices().values()], np.int64)


class _Simulated:
    """Simulations in step, over buffers."""

    def __init__(self, n: int, of: Mapping[str, Any], seconds: float, base: str | None) -> None:
        if base is not None:
            check_policy(base)
        self.n = n
        self.env = _core.open_sim_env(
            of.get("machine"), of.get("workload"), of.get("model"), of.get("scenario"), set_text(of.get("set")),
            weights_text(of.get("weights")), 0, n, check_seconds("seconds", seconds), base,
        )  # fmt: skip
        self.observation = np.zeros((n, len(observation_names())), np.float32)
        self.reward = np.zeros(n, np.float64)
        self.over = np.zeros(n, np.uint8)

    def reset(self, i: int, seed: int) -> None:
        self.env.reset(i, seed, self.observation[i])

    def step(self, actions: Any) -> None:
        self.env.step(np.ascontiguousarray(actions, np.int32), self.observation, self.reward, self.over)

    def masks(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        rows = [np.frombuffer(self.env.mask(i), np.uint8) for i in range(self.n)]
        return np.stack(rows).astype(bool)


def _seed_of(random: Any) -> int:
    return int(random.integers(0, 2**63))


class LoaderEnv(gymnasium.Env):  # type: ignore[misc, type-arg]
    """One simulated loader.  info["result"] at the end of an episode says what happened in it."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        *,
        machine: str | None = None,
        workload: str | None = None,
        model: str | None = None,
        scenario: str | None = None,
        set: Mapping[str, float] | str | None = None,
        weights: Any = None,
        seconds: float = 120,
        base: str | None = None,
    ) -> None:
        """Open the environment; every episode is another instance of the scenario."""
        of = dict(machine=machine, workload=workload, model=model, scenario=scenario, set=set, weights=weights)
        self._all = _Simulated(1, of, seconds, base)
        self.observation_space = observation_space()
        self.action_space = action_space()

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; the same seed gives the same instance."""
        super().reset(seed=seed)
        self._all.reset(0, _seed_of(self.np_random))
        return self._all.observation[0].copy(), {"action_mask": self.action_mask()}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Carry out an action and let a second pass."""
        self._all.step(np.asarray(action)[None])
        info: dict[str, Any] = {"action_mask": self.action_mask()}
        over = bool(self._all.over[0])
        if over:
            info["result"] = self.result()._asdict()
        return self._all.observation[0].copy(), float(self._all.reward[0]), False, over, info

    def action_mask(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return whether each choice of each action may change something, all actions' choices in a row."""
        return self._all.masks()[0]

    def result(self) -> Result:
        """Return what happened in this episode so far."""
        return Result(**self._all.env.look(0))


class LoaderVectorEnv(gymnasium.vector.VectorEnv):  # type: ignore[misc, type-arg]
    """Many simulated loaders that take steps together.  One whose episode ended begins another in its next step."""

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        num_envs: int,
        *,
        machine: str | None = None,
        workload: str | None = None,
        model: str | None = None,
        scenario: str | None = None,
        set: Mapping[str, float] | str | None = None,
        weights: Any = None,
        seconds: float = 120,
        base: str | None = None,
    ) -> None:
        """Open the environments; every episode is another instance of the scenario."""
        of = dict(machine=machine, workload=workload, model=model, scenario=scenario, set=set, weights=weights)
        self._all = _Simulated(num_envs, of, seconds, base)
        self.num_envs = num_envs
        self.single_observation_space = observation_space()
        self.single_action_space = action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._ended = np.zeros(num_envs, bool)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in each environment; seed: an int, or a list with one for each."""
        if isinstance(seed, (list, tuple, np.ndarray)):
            if len(seed) != self.num_envs:
                raise _core.ArgumentError(f"seed must have {self.num_envs} entries, got {len(seed)}")
            seeds = [int(one) if one is not None else _seed_of(self.np_random) for one in seed]
        else:
            super().reset(seed=seed)
            seeds = [_seed_of(self.np_random) for _ in range(self.num_envs)]
        for i, one in enumerate(seeds):
            self._all.reset(i, one)
        self._ended[:] = False
        return self._all.observation.copy(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Carry out an action in each environment and let a second pass."""
        begun = self._ended.copy()
        self._all.step(actions)
        for i in np.flatnonzero(begun):
            self._all.reset(int(i), _seed_of(self.np_random))
        reward = np.where(begun, 0.0, self._all.reward)
        self._ended = (self._all.over != 0) & ~begun
        terminated = np.zeros(self.num_envs, bool)
        return self._all.observation.copy(), reward, terminated, self._ended.copy(), {}

    def action_masks(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return for each environment whether each choice of each action may change something."""
        return self._all.masks()


gymnasium.register(
    "drapps/Loader-v0", entry_point="drapps.gym:LoaderEnv", vector_entry_point="drapps.gym:LoaderVectorEnv"
)
