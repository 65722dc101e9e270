/* Waiting with a deadline, signals kept away from threads, forks noticed. */
#include "unit/cm.h"

#include <signal.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_end_at_their_deadline),
        cmocka_unit_test(one_thread_stands_back_alone),
        cmocka_unit_test(threads_take_no_signals),
        cmocka_unit_test(a_child_knows_that_it_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
