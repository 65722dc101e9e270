/* Every row of the table of audio codecs is complete. */
#include "unit/cm.h"

#include <string.h>

#include "codec/audio/audio.h"

static void rows_are_complete(void **state)
{
    (void)state;
    for (const dr_audio_codec *const *c = dr__audio_codecs; *c; c++) {
        assert_true((*c)->name && (*c)->summary && (*c)->probe && (*c)->header && (*c)->decode);
        assert_false((*c)->probe((const uint8_t *)"", 0));
        for (const dr_audio_codec *const *other = dr__audio_codecs; other < c; other++)
            assert_string_not_equal((*c)->name, (*other)->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(rows_are_complete) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
