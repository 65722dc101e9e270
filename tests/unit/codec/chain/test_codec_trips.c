/* Random arrays through random codecs and back, whole and damaged: test_codec_trips [ROUNDS].  CODEC_SEED repeats a
 * run. */
#include <time.h>

#include "unit/cm.h"
#include "unit/codec/chain/codec_trial.h"

static long n_rounds = 20000;

static void what_was_encoded_comes_back(void **state)
{
    (void)state;
    const char *given = getenv("CODEC_SEED");
    trial_rounds(given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL), n_rounds, 4);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        n_rounds = atol(argv[1]);
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_was_encoded_comes_back) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
