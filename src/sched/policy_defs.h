/* policy_defs.h: every policy.  DR_POLICY(name) is dr__policy_<name> in policy_<name>.c. */
DR_POLICY(fixed)
DR_POLICY(rules)
DR_POLICY(climb)
DR_POLICY(stages)
DR_POLICY(analytic)
DR_POLICY(mpc)
