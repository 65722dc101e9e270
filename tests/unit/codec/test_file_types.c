/* The list of file name extensions, against the tables of codecs. */
#include "unit/cm.h"

#include <string.h>

#include "codec/audio/audio.h"
#include "codec/codec_config.h"
#include "codec/file_types.h"
#include "codec/image/image.h"
#include "codec/volume/volume.h"

static int count(const char *codec)
{
    int n = 0;
    for (const dr__file_type *t = dr__file_types; t->extension; t++)
        n += !strcmp(t->codec, codec);
    return n;
}

static void every_codec_has_extensions(void **state)
{
    (void)state;
    for (const dr_image_codec *const *c = dr__image_codecs; *c; c++)
        assert_true(count((*c)->name) > 0);
    for (const dr_volume_codec *const *c = dr__volume_codecs; *c; c++)
        assert_true(count((*c)->name) > 0);
    for (const dr_audio_codec *const *c = dr__audio_codecs; *c; c++)
        assert_true(count((*c)->name) > 0);
}

static bool has_codec(const dr__file_type *type)
{
    for (const dr_image_codec *const *c = dr__image_codecs; type->kind == DR__FILE_IMAGE && *c; c++)
        if (!strcmp((*c)->name, type->codec))
            return true;
    for (const dr_volume_codec *const *c = dr__volume_codecs; type->kind == DR__FILE_VOLUME && *c; c++)
        if (!strcmp((*c)->name, type->codec))
            return true;
    return false;
}

static void every_extension_is_well_formed_and_unique(void **state)
{
    (void)state;
    for (const dr__file_type *t = dr__file_types; t->extension; t++) {
        assert_int_equal(t->extension[0], '.');
        for (const char *p = t->extension + 1; *p; p++)
            assert_true((*p >= 'a' && *p <= 'z') || *p == '.');
        for (const dr__file_type *other = dr__file_types; other < t; other++)
            assert_string_not_equal(t->extension, other->extension);
        assert_ptr_equal(dr__file_type_find(t->extension), t);
#if defined DR_HAVE_PNG && defined DR_HAVE_WEBP && defined DR_HAVE_GIF && defined DR_HAVE_TIFF
        assert_true(has_codec(t));
#else
        (void)has_codec;
#endif
    }
    assert_string_equal(dr__file_type_find(".JPG")->codec, "jpeg");
    assert_null(dr__file_type_find(".exe"));
}

static void folders_take_what_image_folder_takes(void **state)
{
    (void)state;
    const char *const torchvision[] = { ".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp" };
    const size_t n = sizeof torchvision / sizeof *torchvision;
    for (size_t i = 0; i < n; i++)
        assert_string_equal(dr__folder_extensions[i], torchvision[i]);
    assert_null(dr__folder_extensions[n]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_codec_has_extensions),
        cmocka_unit_test(every_extension_is_well_formed_and_unique),
        cmocka_unit_test(folders_take_what_image_folder_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
