"""drapps experiment rl: what it makes of results.  Training itself needs Stable-Baselines3, which tests do not have."""

import pytest

from benchmarks.experiments.rl import rl_command


def results(seconds, *returns):
    return rl_command.summary([{"seconds": seconds, "steps": 1000, "mean_return": mean} for mean in returns])


def test_states_are_compared():
    assert rl_command.largest_difference("1 2\n3 4", "1 2\n3 4") == 0
    assert rl_command.largest_difference("1 2\n3 4", "1 2.5\n3 3.75") == 0.5
    with pytest.raises(ValueError):
        rl_command.largest_difference("1 2\n3 4", "1 2")


def test_verdicts():
    found = rl_command.verdict(results(1, 500, 490), results(5, 500, 480))
    assert found == {"solved": True, "as good": True, "at least 5 times as fast": True, "ratio": 5}
    found = rl_command.verdict(results(2, 400, 450), results(5, 500, 480))
    assert found == {"solved": False, "as good": False, "at least 5 times as fast": False, "ratio": 2.5}


def test_a_program_that_is_missing(tmp_path):
    with pytest.raises(SystemExit, match="meson setup build-bench"):
        rl_command.main(["--program", str(tmp_path / "rl_cartpole")])
