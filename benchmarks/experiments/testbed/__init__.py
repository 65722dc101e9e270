"""Two hosts on one machine: a store and a client with a link of a given rate and delay between them.

testbed.py makes it: two network namespaces, a shaped link, a CPU quota and a CPU for each host.  testbed_command.py is
`drapps experiment testbed`.
"""
