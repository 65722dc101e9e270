"""Stable-Baselines3 for rl_command.py, run by the interpreter of its own environment.

    python sb3_child.py train STEPS SEED THREADS    prints {"seconds": ..., "steps": ..., "mean_return": ...}
    python sb3_child.py moves N                     prints N states of Gymnasium's CartPole after fixed rules
"""

import json
import sys
import time


def train(steps, seed, threads):
    """Train with the settings of benchmarks/c/rl_cartpole.c, and play 100 episodes."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    torch.set_num_threads(threads)
    model = PPO("MlpPolicy", make_vec_env("CartPole-v1", n_envs=8, seed=seed), n_steps=32, batch_size=256, n_epochs=20,
                gamma=0.98, gae_lambda=0.8, learning_rate=lambda left: 1e-3 * left, clip_range=lambda left: 0.2 * left,
                ent_coef=0.0, seed=seed, device="cpu")  # fmt: skip
    start = time.perf_counter()
    model.learn(steps)
    seconds = time.perf_counter() - start
    mean, _ = evaluate_policy(model, make_vec_env("CartPole-v1", n_envs=8, seed=1000000), n_eval_episodes=100)
    return {"seconds": seconds, "steps": model.num_timesteps, "mean_return": float(mean)}


def moves(n):
    """Yield the states that rl_cartpole.c prints."""
    import gymnasium

    env = gymnasium.make("CartPole-v1").unwrapped
    env.reset(seed=0)
    state = (0.01, -0.02, 0.03, 0.04)
    env.state = state
    for _ in range(n):
        env.step(int(state[2] + state[3] > 0))
        state = [float(value) for value in env.state]
        yield state


if __name__ == "__main__":
    if sys.argv[1] == "train":
        print(json.dumps(train(*map(int, sys.argv[2:5]))))
    else:
        for line in moves(int(sys.argv[2])):
            print(*map(repr, line))
