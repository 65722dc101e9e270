"""The live view of `drapps top`: `rates.py` computes rates, `frame.py` draws, `screen.py` controls the terminal."""
