/* Waiting with a deadline, signals kept away from threads, forks noticed. */
#include "unit/cm.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

static void waits_end_at_their_deadline(void **state)
{
    (void)state;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    dr__cond cond;
    dr__cond_init(&cond);
    pthread_mutex_lock(&lock);
    uint64_t deadline = dr__now_ns() + 3000000;
    while (dr__cond_wait(&cond, &lock, deadline))
        ;
    assert_true(dr__now_ns() >= deadline);
    pthread_mutex_unlock(&lock);
    dr__cond_destroy(&cond);
}

static void *stand_back(void *arg)
{
    dr__thread_stand_back();
    *(int *)arg = getpriority(PRIO_PROCESS, 0);
    return NULL;
}

static void one_thread_stands_back_alone(void **state)
{
    (void)state;
    pthread_t thread;
    int before = getpriority(PRIO_PROCESS, 0), there = -1;
    assert_true(dr__thread_start(&thread, "test", stand_back, &there));
    pthread_join(thread, NULL);
    assert_int_equal(there, 19);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), before);
}

static void *look_at_mask(void *arg)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    *(int *)arg = sigismember(&mask, SIGINT);
    return NULL;
}

static void threads_take_no_signals(void **state)
{
    (void)state;
    pthread_t thread;
    int blocked = 0;
    assert_true(dr__thread_start(&thread, "test", look_at_mask, &blocked));
    pthread_join(thread, NULL);
    assert_int_equal(blocked, 1);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_int_equal(sigismember(&mask, SIGINT), 0);
}

static void a_child_knows_that_it_is_one(void **state)
{
    (void)state;
    unsigned before = dr__fork_generation();
    pid_t pid = fork();
    if (pid == 0)
        _exit(dr__fork_generation() == before + 1 ? 0 : 1);
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(dr__fork_generation(), before);
}

static atomic_bool stop_spinning;

static void *spin(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop_spinning))
        ;
    return NULL;
}

static void pin_to_one_cpu(cpu_set_t *before)
{
    cpu_set_t one;
    sched_getaffinity(0, sizeof *before, before);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
        if (CPU_ISSET(cpu, before))
            CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* Two threads share a CPU: what one of them does takes twice as long, but is not busy for twice as long.  A thread that
 * sleeps does not wait for a CPU. */
static void waiting_for_a_cpu_is_not_being_busy(void **state)
{
    (void)state;
    cpu_set_t before;
    pthread_t other;
    uint64_t start = dr__busy_ns();
    usleep(20000);
    assert_true(dr__busy_since(start) >= 19000000);
    if (access("/proc/thread-self/schedstat", R_OK))
        skip();
    pin_to_one_cpu(&before);
    assert_true(dr__thread_start(&other, "spin", spin, NULL)); /* on the same CPU */
    start = dr__busy_ns();
    const uint64_t wall = dr__now_ns(), cpu = dr__thread_cpu_ns();
    while (dr__thread_cpu_ns() - cpu < 40000000)
        ;
    const double used = (double)(dr__thread_cpu_ns() - cpu), busy = (double)dr__busy_since(start);
    const double took = (double)(dr__now_ns() - wall);
    atomic_store(&stop_spinning, true);
    pthread_join(other, NULL);
    sched_setaffinity(0, sizeof before, &before);
    assert_true(busy >= used * 0.9);
    const double slowdown = dr__thread_slowdown(); /* since the thread began */
    assert_true(slowdown >= 1 && slowdown < 1000);
    assert_true(dr__thread_slowdown() == slowdown); /* too little CPU time since then */
    assert_true(busy - used < (took - used) / 2 + 5e6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_end_at_their_deadline),
        cmocka_unit_test(one_thread_stands_back_alone),
        cmocka_unit_test(threads_take_no_signals),
        cmocka_unit_test(a_child_knows_that_it_is_one),
        cmocka_unit_test(waiting_for_a_cpu_is_not_being_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
