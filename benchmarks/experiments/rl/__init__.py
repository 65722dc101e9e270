"""drapps experiment rl: PPO of drapps and of Stable-Baselines3 on CartPole, with the same settings.

rl_command.py is the command.  drapps runs in benchmarks/c/rl_cartpole.c, Stable-Baselines3 in sb3_child.py, in the
environment that `drapps bench setup rl` makes.
"""
