"""drapps experiment monitor: does the monitor see what the machine does, and what does it cost?

monitor_command.py is the program.  machine.py (ticks, CPUs, memory), disk.py, network.py and cost.py have the tests; each
makes a condition whose truth is known from elsewhere, and compares the monitor's readings with it.  Files that end in
_child.py are programs that the tests start.
"""
