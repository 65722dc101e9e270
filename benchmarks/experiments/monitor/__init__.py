"""drapps experiment monitor: does the monitor read the machine correctly, and what does it cost?

monitor_command.py is the command.  machine.py (ticks, CPUs, memory), disk.py, network.py and cost.py have the tests;
each makes a condition whose true values are known from another source, and compares the monitor's readings with them.
Files that end in _child.py are programs that the tests start.
"""
