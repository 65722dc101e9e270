/* probe_defs.h: all probes, in the order in which they run.  DR_PROBE(name) is dr__probe_<name> in probe_<name>.c. */
DR_PROBE(cpu)
DR_PROBE(pressure)
DR_PROBE(memory)
DR_PROBE(stream)
DR_PROBE(quota)
DR_PROBE(disk)
DR_PROBE(net)
DR_PROBE(rtt)
DR_PROBE(gpu)
DR_PROBE(device) /* after gpu, which overrides it */
DR_PROBE(energy) /* after cpu: its model needs the use of the CPUs */
DR_PROBE(threads)
DR_PROBE(pipeline)
