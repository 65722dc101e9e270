/* test_volume_codec.c: NIfTI and npy files: each type and byte order, scaling, axes, gzip, and files that lie. */
#include "unit/cm.h"

#include "base/alloc.h"
#include "codec/volume/volume.h"
#include "data/desc.h"
#include "unit/codec/volume/nifti_make.h"

static dr_error err;
static float voxels[1024];
static dr__volume_info info;

static dr_status decode(const void *data, size_t size, bool xyz, dr_dtype dtype, void *to)
{
    dr__volume_options options = { .xyz = xyz, .max_voxels = 1024 };
    uint8_t *room = dr__alloc_aligned(DR__VOLUME_ROOM);
    dr_status status = dr__volume_header(data, size, &options, room, &info, &err);
    dr_desc desc = dr__desc_volume(dtype, info.dims);
    dr_view out = dr__view_dense(&desc, to);
    if (status == DR_OK)
        status = dr__volume_decode(data, size, &info, room, &out, &err);
    dr__free_aligned(room);
    return status;
}

static void decodes(const void *data, size_t size, bool xyz)
{
    if (decode(data, size, xyz, DR_F32, voxels) != DR_OK)
        fail_msg("%s", err.text);
}

static void refuses(const struct nifti *n, dr_status want, const char *text)
{
    assert_int_equal(decode(n->bytes, n->size, false, DR_F32, voxels), want);
    if (!strstr(err.text, text))
        fail_msg("wanted \"%s\", got \"%s\"", text, err.text);
}

/* A voxel that says where it is: 100 z + 10 y + x. */
static void count_up(struct nifti *n, bool swap)
{
    nifti_begin(n, swap, 4, 4, 3, 2);
    for (int16_t z = 0; z < 2; z++)
        for (int16_t y = 0; y < 3; y++)
            for (int16_t x = 0; x < 4; x++) {
                int16_t v = (int16_t)(100 * z + 10 * y + x);
                nifti_voxel(n, &v, sizeof v);
            }
}

static void axes_and_spacing(void **state)
{
    struct nifti n;
    (void)state;
    for (int swap = 0; swap < 2; swap++) {
        count_up(&n, swap);
        decodes(n.bytes, n.size, false);
        assert_memory_equal(info.dims, ((int64_t[]){ 1, 2, 3, 4 }), sizeof info.dims);
        assert_memory_equal(info.spacing, ((double[]){ 2.5, 1.5, 0.5 }), sizeof info.spacing);
        assert_true(voxels[0] == 0 && voxels[3] == 3 && voxels[4] == 10 && voxels[12 + 4 + 1] == 111);
        decodes(n.bytes, n.size, true);
        assert_memory_equal(info.dims, ((int64_t[]){ 1, 4, 3, 2 }), sizeof info.dims);
        assert_memory_equal(info.spacing, ((double[]){ 0.5, 1.5, 2.5 }), sizeof info.spacing);
        assert_true(voxels[0] == 0 && voxels[1] == 100 && voxels[2] == 10 && voxels[6 + 2 + 1] == 111);
    }
}

#define EACH_TYPE(X)                                                                                                   \
    X(2, uint8_t, 200)                                                                                                 \
    X(4, int16_t, -3000)                                                                                               \
    X(8, int32_t, -70000)                                                                                              \
    X(16, float, 1.25f)                                                                                                \
    X(64, double, -0.5)                                                                                                \
    X(256, int8_t, -100) X(512, uint16_t, 60000) X(768, uint32_t, 3000000000u) X(1024, int64_t, -5) X(1280, uint64_t, 7)

static void every_type(void **state)
{
    struct nifti n;
    (void)state;
#define CHECK_TYPE(code, type, value)                                                                                  \
    for (int swap = 0; swap < 2; swap++) {                                                                             \
        type v = value;                                                                                                \
        nifti_begin(&n, swap, code, 3, 1, 1);                                                                          \
        for (int i = 0; i < 3; i++)                                                                                    \
            nifti_voxel(&n, &v, sizeof v);                                                                             \
        decodes(n.bytes, n.size, false);                                                                               \
        assert_true(voxels[2] == (float)v);                                                                            \
    }
    EACH_TYPE(CHECK_TYPE)
}

static void slope_and_channels(void **state)
{
    struct nifti n;
    (void)state;
    count_up(&n, false);
    nifti_f32(&n, 112, 0.5f);
    nifti_f32(&n, 116, -3);
    decodes(n.bytes, n.size, false);
    assert_true(voxels[4] == 2 && voxels[5] == 2.5f);
    nifti_i16(&n, 40, 4);
    nifti_i16(&n, 46, 1);
    nifti_i16(&n, 48, 2);
    decodes(n.bytes, n.size, false);
    assert_memory_equal(info.dims, ((int64_t[]){ 2, 1, 3, 4 }), sizeof info.dims);
}

static void whole_numbers_only(void **state)
{
    struct nifti n;
    uint8_t bytes[64];
    const float bad = 1.5f, good = 2;
    (void)state;
    nifti_begin(&n, false, 16, 1, 1, 1);
    nifti_voxel(&n, &good, sizeof good);
    assert_int_equal(decode(n.bytes, n.size, false, DR_U8, bytes), DR_OK);
    assert_int_equal(bytes[0], 2);
    nifti_begin(&n, false, 16, 1, 1, 1);
    nifti_voxel(&n, &bad, sizeof bad);
    assert_int_equal(decode(n.bytes, n.size, false, DR_U8, bytes), DR_ERR_FORMAT);
    assert_non_null(strstr(err.text, "1.5"));
    nifti_begin(&n, false, 4, 1, 1, 1);
    nifti_voxel(&n, &(int16_t){ 300 }, 2);
    assert_int_equal(decode(n.bytes, n.size, false, DR_U8, bytes), DR_ERR_FORMAT);
    assert_non_null(strstr(err.text, "300"));
    assert_int_equal(decode(n.bytes, n.size, false, DR_I16, bytes), DR_OK);
}

static void files_that_lie(void **state)
{
    struct nifti n;
    (void)state;
    count_up(&n, false);
    n.size -= 1;
    refuses(&n, DR_ERR_FORMAT, "cannot hold 24 voxels");
    count_up(&n, false);
    nifti_i16(&n, 42, 2000);
    refuses(&n, DR_ERR_LIMIT, "max_voxels = 1024");
    count_up(&n, false);
    nifti_i16(&n, 42, -1);
    refuses(&n, DR_ERR_FORMAT, "axis 1 must have 1 to 32767 voxels, got -1");
    count_up(&n, false);
    nifti_i16(&n, 40, 9);
    refuses(&n, DR_ERR_FORMAT, "got 9");
    count_up(&n, false);
    nifti_i16(&n, 70, 32);
    refuses(&n, DR_ERR_UNSUPPORTED, "complex64");
    count_up(&n, false);
    nifti_i16(&n, 70, 3);
    refuses(&n, DR_ERR_FORMAT, "data type 3");
    count_up(&n, false);
    memcpy(n.bytes + 344, "ni1", 4);
    refuses(&n, DR_ERR_UNSUPPORTED, "n+1");
    count_up(&n, false);
    nifti_f32(&n, 108, 1e20f);
    refuses(&n, DR_ERR_FORMAT, "got 1e+20");
    n.size = 100;
    refuses(&n, DR_ERR_FORMAT, "100 of 348");
    n.size = 0;
    refuses(&n, DR_ERR_FORMAT, "neither");
}

static size_t npy(uint8_t *to, const char *head, const void *data, size_t size)
{
    size_t len = strlen(head);
    memcpy(to, "\x93NUMPY\x01\x00", 8);
    to[8] = (uint8_t)len;
    to[9] = 0;
    memcpy(to + 10, head, len);
    memcpy(to + 10 + len, data, size);
    return 10 + len + size;
}

static void npy_files(void **state)
{
    uint8_t file[512];
    int16_t v[24];
    (void)state;
    for (int i = 0; i < 24; i++)
        v[i] = (int16_t)i;
    size_t n = npy(file, "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3, 4), }\n", v, sizeof v);
    decodes(file, n, false);
    assert_memory_equal(info.dims, ((int64_t[]){ 1, 2, 3, 4 }), sizeof info.dims);
    assert_true(voxels[23] == 23 && voxels[4] == 4 && info.spacing[0] == 0);
    n = npy(file, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3, 4), }\n", v, sizeof v);
    decodes(file, n, false);
    assert_true(voxels[12] == 1 && voxels[4] == 2 && voxels[1] == 6); /* [1,0,0], [0,1,0], [0,0,1] */
    n = npy(file, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3, 2, 2), }\n", v, sizeof v);
    decodes(file, n, false);
    assert_memory_equal(info.dims, ((int64_t[]){ 2, 3, 2, 2 }), sizeof info.dims);
    assert_true(voxels[12] == 1 && voxels[4] == 2 && voxels[1] == 12);
    n = npy(file, "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }\n", v, sizeof v);
    assert_int_equal(decode(file, n, false, DR_F32, voxels), DR_ERR_UNSUPPORTED);
    n = npy(file, "{'descr': '<c8', 'fortran_order': False, 'shape': (2, 3, 1), }\n", v, sizeof v);
    assert_int_equal(decode(file, n, false, DR_F32, voxels), DR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "<c8"));
}

#ifdef DR_HAVE_ZLIB
static void gzipped(void **state)
{
    struct nifti n;
    uint8_t packed[NIFTI_MOST];
    float want[24];
    (void)state;
    count_up(&n, false);
    decodes(n.bytes, n.size, false);
    memcpy(want, voxels, sizeof want);
    for (int parts = 0; parts < 2; parts++) {
        size_t size = nifti_gzip(&n, parts ? 360 : 0, packed);
        decodes(packed, size, false);
        assert_memory_equal(voxels, want, sizeof want);
        memset(packed + size, 0, 512); /* padding */
        decodes(packed, size + 512, false);
        assert_memory_equal(voxels, want, sizeof want);
        memset(packed + size + 510, 1, 2); /* and what is neither that nor gzip */
        assert_fails(decode(packed, size + 512, false, DR_F32, voxels), DR_ERR_FORMAT, "gzip");
        assert_int_not_equal(decode(packed, size - 20, false, DR_F32, voxels), DR_OK);
        packed[size / 2] ^= 0x40;
        dr_status status = decode(packed, size, false, DR_F32, voxels);
        assert_true(status == DR_ERR_FORMAT || status == DR_ERR_UNSUPPORTED || status == DR_ERR_LIMIT);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(axes_and_spacing),
        cmocka_unit_test(every_type),
        cmocka_unit_test(slope_and_channels),
        cmocka_unit_test(whole_numbers_only),
        cmocka_unit_test(files_that_lie),
        cmocka_unit_test(npy_files),
#ifdef DR_HAVE_ZLIB
        cmocka_unit_test(gzipped),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
