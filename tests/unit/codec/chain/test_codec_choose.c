/* Classes of data, kept figures, and the choice of a codec. */
#include <math.h>
#include <unistd.h>

#include "unit/cm.h"

#include <drapps/codec.h>

#include "codec/codec_config.h"

enum { N = 40000 };

static dr_error err;
static char folder[] = "/tmp/drapps-codec-XXXXXX";
static uint32_t seed = 7;

static uint32_t noise(void)
{
    seed = seed * 1664525 + 1013904223;
    return seed >> 8;
}

static dr_desc line(dr_dtype type, int64_t n)
{
    return (dr_desc){ .dtype = type, .n_dims = 1, .dims = { n } };
}

static void expect_class(const dr_desc *desc, const void *data, dr_codec_class want)
{
    assert_string_equal(dr_codec_class_name(dr_codec_classify(desc, data)), dr_codec_class_name(want));
}

static uint8_t bytes[N];
static int64_t tokens[N], ramp[N];
static float floats[N];

static void fill(void)
{
    for (int i = 0; i < N; i++) {
        tokens[i] = noise() % 50257;
        ramp[i] = 1000000 + i * 3 + noise() % 5;
        floats[i] = (float)sin(i / 100.0);
    }
}

static void fill_text(void)
{
    static const char words[] = "the cat sat on the mat and saw a bird ";
    for (int i = 0; i < N; i++)
        bytes[i] = (uint8_t)words[(i + noise() % 2) % (sizeof words - 1)];
}

static void fill_noise(void)
{
    for (int i = 0; i < N; i++)
        bytes[i] = (uint8_t)noise();
}

static void classes_are_told(void **state)
{
    (void)state;
    const dr_desc plain = line(DR_U8, N), i64 = line(DR_I64, N), f32 = line(DR_F32, N);
    fill_text();
    expect_class(&plain, bytes, DR_CODEC_TEXT);
    memcpy(bytes, "\xff\xd8\xff\xe0", 4);
    expect_class(&plain, bytes, DR_CODEC_MEDIA);
    fill_noise();
    expect_class(&plain, bytes, DR_CODEC_MEDIA);
    memset(bytes, 0, N / 2);
    expect_class(&plain, bytes, DR_CODEC_OTHER);
    const dr_desc image = { .kind = DR_KIND_IMAGE, .dtype = DR_U8, .n_dims = 3, .dims = { 100, 100, 3 } };
    expect_class(&image, bytes, DR_CODEC_PIXELS);
    expect_class(&i64, tokens, DR_CODEC_TOKENS);
    expect_class(&i64, ramp, DR_CODEC_INTS);
    expect_class(&f32, floats, DR_CODEC_FLOATS);
    const dr_desc empty = line(DR_U8, 0);
    expect_class(&empty, bytes, DR_CODEC_OTHER);
    assert_string_equal(dr_codec_class_name((dr_codec_class)99), "?");
}

static dr_codec_choice choose(const dr_desc *desc, const void *data, double bandwidth)
{
    dr_codec_choice choice;
    dr_codec_criteria criteria;
    dr_codec_criteria_defaults(&criteria);
    criteria.read_bytes_per_s = bandwidth;
    assert_ok(dr_codec_choose(desc, data, &criteria, &choice, &err));
    return choice;
}

static void the_choice_follows_data_and_bandwidth(void **state)
{
    (void)state;
    const dr_desc plain = line(DR_U8, N), i64 = line(DR_I64, N), f32 = line(DR_F32, N), empty = line(DR_F32, 0);
    fill_noise();
    memcpy(bytes, "\xff\xd8\xff\xe0", 4);
    assert_string_equal(choose(&plain, bytes, 1e6).spec, "none"); /* R54: never on top of a JPEG */
    assert_true(choose(&i64, tokens, 1e6).speed.ratio > 3.9);
    assert_true(choose(&i64, ramp, 1e6).speed.ratio > 5);
    assert_string_equal(choose(&i64, tokens, 1e12).spec, "none"); /* nothing to gain */
    assert_ok(dr_codec_choose(&empty, NULL, NULL, &(dr_codec_choice){ 0 }, &err));
#ifdef DR_HAVE_ZSTD
    fill_text();
    const dr_codec_choice slow = choose(&plain, bytes, 1e6), fast = choose(&plain, bytes, 2e9);
    assert_true(strstr(slow.spec, "zstd") && slow.speed.ratio >= fast.speed.ratio);
    assert_true(strstr(choose(&f32, floats, 1e6).spec, "shuffle"));
#endif
    (void)f32;
}

static void wrong_wishes_are_refused(void **state)
{
    (void)state;
    const dr_desc f32 = line(DR_F32, N);
    dr_codec_choice choice;
    dr_codec_criteria criteria;
    dr_codec_criteria_defaults(&criteria);
    criteria.decode_cores = 0;
    assert_fails(dr_codec_choose(&f32, floats, &criteria, &choice, &err), DR_ERR_ARG, "decode_cores must be above 0");
    criteria.size = 4;
    assert_fails(dr_codec_choose(&f32, floats, &criteria, &choice, &err), DR_ERR_ARG, "size must be");
}

static void candidates_take_their_type(void **state)
{
    (void)state;
    for (int c = 0; c <= DR_CODEC_OTHER + 1; c++) {
        for (int type = 0; type <= DR_BOOL + 1; type++) {
            const char *const *list = dr_codec_candidates((dr_codec_class)c, (dr_dtype)type);
            assert_string_equal(list[0], "none");
            for (; *list && dr_dtype_size((dr_dtype)type); list++) {
                dr_codec *codec = NULL;
                assert_ok(dr_codec_open(*list, NULL, &codec, &err));
                assert_true(dr_codec_takes(codec, (dr_dtype)type) && dr_codec_about(codec).lossless);
                dr_codec_close(&codec);
            }
        }
    }
    assert_null(dr_codec_candidates(DR_CODEC_MEDIA, DR_U8)[1]);
}

static void figures_are_kept(void **state)
{
    (void)state;
    const dr_desc f32 = line(DR_F32, N);
    dr_codec *codec = NULL;
    dr_codec_speed speed, back;
    assert_ok(dr_codec_measured("shuffle", DR_CODEC_FLOATS, &back, &err));
    assert_true(!back.measured && back.decode_bytes_per_s > 0 && back.ratio >= 1);
    assert_ok(dr_codec_open("shuffle", NULL, &codec, &err));
    assert_ok(dr_codec_measure(codec, &f32, floats, 0, &speed, &err));
    assert_true(speed.measured && speed.encode_bytes_per_s > 0 && speed.ratio > 0.9);
    assert_ok(dr_codec_keep("shuffle", DR_CODEC_FLOATS, &speed, &err));
    assert_ok(dr_codec_measured("shuffle", DR_CODEC_FLOATS, &back, &err));
    assert_true(back.measured && fabs(back.decode_bytes_per_s / speed.decode_bytes_per_s - 1) < 1e-9);
    assert_ok(dr_codec_measured("shuffle", DR_CODEC_INTS, &back, &err));
    assert_false(back.measured);
    speed.ratio = NAN;
    assert_fails(dr_codec_keep("shuffle", DR_CODEC_FLOATS, &speed, &err), DR_ERR_ARG, "above 0 and finite");
    assert_fails(dr_codec_measured("zlib", DR_CODEC_FLOATS, &back, &err), DR_ERR_ARG, "no stage");
    assert_fails(dr_codec_measured("shuffle", (dr_codec_class)99, &back, &err), DR_ERR_NOT_FOUND, "99");
    dr_codec_close(&codec);
}

static void a_folder_that_cannot_be_written_is_named(void **state)
{
    (void)state;
    const dr_codec_speed speed = { .encode_bytes_per_s = 1e9, .decode_bytes_per_s = 1e9, .ratio = 2 };
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
    assert_fails(dr_codec_keep("shuffle", DR_CODEC_FLOATS, &speed, &err), DR_ERR_IO, "/proc/nowhere/drapps/codecs");
    setenv("XDG_CACHE_HOME", folder, 1);
}

int main(void)
{
    if (!mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1))
        return 1;
    fill();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_told),         cmocka_unit_test(the_choice_follows_data_and_bandwidth),
        cmocka_unit_test(wrong_wishes_are_refused), cmocka_unit_test(candidates_take_their_type),
        cmocka_unit_test(figures_are_kept),         cmocka_unit_test(a_folder_that_cannot_be_written_is_named),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) || failed;
}
