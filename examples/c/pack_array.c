/* pack_array.c: a slowly changing signal, encoded by the codec that suits it and decoded again.  It needs the
 * compression library alone:
 *
 *   cc pack_array.c $(pkg-config --cflags --libs drapps-codec) -o pack_array
 *   ./pack_array [SPEC]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drapps/codec.h>

enum { N = 100000 };

static int fail(const dr_error *err)
{
    fprintf(stderr, "pack_array: %s\n", err->text);
    return 1;
}

int main(int argc, char **argv)
{
    static int32_t signal[N], back[N];
    const dr_desc desc = { .dtype = DR_I32, .n_dims = 1, .dims = { N } };
    dr_error err = { 0 };
    dr_codec_choice choice;
    dr_codec_criteria criteria;
    dr_codec *codec = NULL;
    size_t bound, n;
    for (int i = 1; i < N; i++)
        signal[i] = signal[i - 1] + (i * 7919 % 31) - 14;

    dr_codec_criteria_defaults(&criteria);
    criteria.read_bytes_per_s = 100e6;
    if (dr_codec_choose(&desc, signal, &criteria, &choice, &err) != DR_OK)
        return fail(&err);
    if (dr_codec_open(argc > 1 ? argv[1] : choice.spec, NULL, &codec, &err) != DR_OK)
        return fail(&err);
    if (dr_codec_bound(codec, &desc, &bound, &err) != DR_OK)
        return fail(&err);
    uint8_t *frame = malloc(bound);
    if (!frame)
        return 1;
    if (dr_codec_encode(codec, &desc, signal, frame, bound, &n, &err) != DR_OK ||
        dr_codec_decode(frame, n, NULL, back, sizeof back, &err) != DR_OK)
        return fail(&err);
    printf("%s: %zu bytes of %s became %zu, and %s\n", dr_codec_about(codec).spec, sizeof signal,
           dr_codec_class_name(choice.data_class), n, memcmp(signal, back, sizeof back) ? "differ" : "came back");
    free(frame);
    dr_codec_close(&codec);
    return 0;
}
