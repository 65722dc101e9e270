/* stopped_clock.h: a program's clocks in the hands of its test.  Where a test judges times, it stops them and moves
 * them itself, so that the times are exact on any machine.  Waits with a deadline are the kernel's and go by the real
 * clock.
 */
#ifndef DR_TESTS_STOPPED_CLOCK_H
#define DR_TESTS_STOPPED_CLOCK_H

#include <stdint.h>

/* Monotonic time and CPU time stand still, in all threads, and move by `ns` when the test says so. */
void stop_clock(void);
void move_clock(uint64_t ns);

/* They go on, from where the real clock is or, if that is later, from where they were moved to. */
void start_clock(void);

#endif
