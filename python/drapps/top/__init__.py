"""The view of `drapps top`: `rates.py` reads and compares, `frame.py` draws, `screen.py` owns the terminal."""
