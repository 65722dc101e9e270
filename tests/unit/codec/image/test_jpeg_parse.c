/* test_jpeg_parse.c: which headers the own decoder takes, which it leaves to libjpeg, and what it reads in them. */
#include "unit/cm.h"
#include "codec/image/jpeg_parse.h"
#include "unit/codec/image/tiny_jpeg.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct tiny_jpeg usual = { .width = 33, .height = 17, .n_components = 3, .factors = { 0x22, 0x11, 0x11 } };
static const struct tiny_jpeg grey = { .width = 33, .height = 17, .n_components = 1, .factors = { 0x11 } };

static bool parse_spec(const struct tiny_jpeg *spec, dr__jpeg_frame *f)
{
    struct blob b = tiny_header(spec);
    const bool taken = dr__jpeg_parse(b.data, b.size, true, f);
    blob_free(&b);
    return taken;
}

static void what_a_header_says(void **state)
{
    (void)state;
    dr__jpeg_frame f;
    struct blob b = tiny_header(&usual);
    assert_true(dr__jpeg_parse(b.data, b.size, false, &f));
    assert_true(f.width == 33 && f.height == 17 && f.n_components == 3 && !f.rgb && f.restart == 0);
    assert_true(f.mcu_width == 16 && f.mcu_height == 16 && f.mcus_across == 3 && f.mcu_rows == 2);
    assert_true(f.component[0].width == 33 && f.component[1].width == 17 && f.component[2].height == 9);
    assert_int_equal(f.scan, b.size);
    assert_int_equal(f.orientation, 1);
    assert_memory_equal(f.huffman[1][0], tiny_table, sizeof tiny_table);
    blob_free(&b);
}

/* A header that ends early is not taken and not read beyond. */
static void every_beginning_of_a_header(void **state)
{
    (void)state;
    dr__jpeg_frame f;
    struct blob b = tiny_header(&usual);
    for (size_t n = 0; n < b.size; n++) {
        struct blob part = blob_copy(b.data, n);
        assert_false(dr__jpeg_parse(part.data, part.size, true, &f));
        blob_free(&part);
    }
    blob_free(&b);
}

static void sampling_factors(void **state)
{
    (void)state;
    static const struct {
        uint8_t factors[3];
        int width; /* pixels */
        bool taken;
    } cases[] = {
        { { 0x11, 0x11, 0x11 }, 1, true },
        { { 0x21, 0x11, 0x11 }, 33, true },
        { { 0x12, 0x11, 0x11 }, 1, true },
        { { 0x22, 0x11, 0x11 }, 33, true },
        { { 0x22, 0x21, 0x21 }, 33, true },
        { { 0x22, 0x12, 0x12 }, 33, true },
        { { 0x21, 0x21, 0x21 }, 1, true },
        { { 0x12, 0x12, 0x12 }, 1, true },
        { { 0x22, 0x22, 0x11 }, 33, true },
        { { 0x22, 0x12, 0x21 }, 33, true },
        { { 0x22, 0x22, 0x22 }, 33, false }, /* twelve blocks */
        { { 0x22, 0x22, 0x21 }, 33, true },  /* ten */
        { { 0x11, 0x21, 0x11 }, 33, false },
        { { 0x11, 0x11, 0x12 }, 33, false },
        { { 0x41, 0x11, 0x11 }, 33, false },
        { { 0x14, 0x11, 0x11 }, 33, false },
        { { 0x41, 0x21, 0x21 }, 33, false },
        { { 0x31, 0x11, 0x11 }, 33, false },
        { { 0x01, 0x11, 0x11 }, 33, false },
        { { 0x22, 0x10, 0x11 }, 33, false },
        { { 0x22, 0x11, 0x01 }, 33, false },
        /* two chroma samples across are upsampled by another rule */
        { { 0x22, 0x11, 0x11 }, 4, false },
        { { 0x22, 0x11, 0x11 }, 5, true },
        { { 0x21, 0x21, 0x11 }, 4, false },
        { { 0x22, 0x21, 0x21 }, 1, true },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tiny_jpeg spec = usual;
        dr__jpeg_frame f;
        memcpy(spec.factors, cases[i].factors, 3);
        spec.width = cases[i].width;
        if (parse_spec(&spec, &f) != cases[i].taken)
            fail_msg("%02x %02x %02x, %d wide", spec.factors[0], spec.factors[1], spec.factors[2], spec.width);
    }
}

/* A scan of one component has MCUs of one block, whatever its factors. */
static void grey_factors(void **state)
{
    (void)state;
    for (int factors = 0; factors < 0x100; factors++) {
        struct tiny_jpeg spec = grey;
        dr__jpeg_frame f;
        spec.factors[0] = (uint8_t)factors;
        const bool legal = factors >> 4 >= 1 && factors >> 4 <= 4 && (factors & 15) >= 1 && (factors & 15) <= 4;
        assert_int_equal(parse_spec(&spec, &f), legal);
        if (legal)
            assert_true(f.mcu_width == 8 && f.mcu_height == 8 && f.mcus_across == 5 && f.mcu_rows == 3);
    }
}

static void sizes(void **state)
{
    (void)state;
    static const struct {
        int width, height;
        bool taken;
    } cases[] = {
        { 0, 1, false },     { 1, 0, false },     { 1, 1, true },          { 65500, 1, true },     { 1, 65500, true },
        { 65501, 1, false }, { 1, 65501, false }, { 65535, 65535, false }, { 65500, 65500, true },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tiny_jpeg spec = grey;
        dr__jpeg_frame f;
        spec.width = cases[i].width;
        spec.height = cases[i].height;
        if (parse_spec(&spec, &f) != cases[i].taken)
            fail_msg("%d x %d", spec.width, spec.height);
    }
}

/* The first byte of the first segment with a marker. */
static size_t find_segment(const struct blob *b, int marker)
{
    for (size_t at = 2; at + 4 <= b->size; at += 2u + (unsigned)(b->data[at + 2] << 8 | b->data[at + 3]))
        if (b->data[at + 1] == marker)
            return at;
    fail_msg("no segment %02x", marker);
    return 0;
}

/* One byte of a header is another: in which segment, where (0: FF, 1: marker, 2: length, 4: content), what. */
static void one_byte_changed(void **state)
{
    (void)state;
    enum { DHT = 0xc4, SOF = 0xc0, SOS = 0xda, DQT = 0xdb };
    static const struct {
        const char *what;
        int marker, at, value;
        bool taken;
    } cases[] = {
        { "SOF1", SOF, 1, 0xc1, true },
        { "SOF2: progressive", SOF, 1, 0xc2, false },
        { "SOF3: lossless", SOF, 1, 0xc3, false },
        { "SOF9: arithmetic", SOF, 1, 0xc9, false },
        { "no frame", SOF, 1, 0xe5, false },
        { "no FF", SOF, 0, 0xfe, false },
        { "a marker without length", DQT, 1, 0x01, false },
        { "a restart marker", DQT, 1, 0xd0, false },
        { "SOI again", DQT, 1, 0xd8, false },
        { "EOI", DQT, 1, 0xd9, false },
        { "DNL", DQT, 1, 0xdc, false },
        { "length 1", DQT, 3, 1, false },
        { "length 0", DQT, 3, 0, false },
        { "12 bits", SOF, 4, 12, false },
        { "two components", SOF, 9, 2, false },
        { "four components", SOF, 9, 4, false },
        { "any id", SOF, 10, 77, false }, /* the scan says 1 */
        { "quantisation table 1: missing", SOF, 12, 1, false },
        { "quantisation table 4", SOF, 12, 4, false },
        { "quantisation table 3 is the only one", DQT, 4, 3, false },
        { "quantisation table 4 is the only one", DQT, 4, 4, false },
        { "16-bit quantisation, half of it", DQT, 4, 0x10, false },
        { "Huffman table 1 is the only one", DHT, 4, 0x01, false },
        { "Huffman table 4", DHT, 4, 0x04, false },
        { "Huffman class 2", DHT, 4, 0x20, false },
        { "no DC table", DHT, 4, 0x10, false },
        { "more symbols than bytes", DHT, 5, 9, false },
        { "two of three components", SOS, 4, 2, false },
        { "components in another order", SOS, 5, 2, false },
        { "DC table 1: missing", SOS, 6, 0x10, false },
        { "AC table 1: missing", SOS, 6, 0x01, false },
        { "DC table 4", SOS, 6, 0x40, false },
        { "from the first AC", SOS, 11, 1, false },
        { "to the 62nd", SOS, 12, 62, false },
        { "point transform", SOS, 13, 1, false },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct blob b = tiny_header(&usual);
        dr__jpeg_frame f;
        b.data[find_segment(&b, cases[i].marker) + (size_t)cases[i].at] = (uint8_t)cases[i].value;
        if (dr__jpeg_parse(b.data, b.size, true, &f) != cases[i].taken)
            fail_msg("%s", cases[i].what);
        blob_free(&b);
    }
}

#define JFIF "\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0"
#define ADOBE(transform)                                                                                               \
    "\xff\xee\0\x0e"                                                                                                   \
    "Adobe\0\x64\0\0\0\0" transform
#define DRI(size, interval) "\xff\xdd\0" size interval
#define EXIF(orientation)                                                                                              \
    "\xff\xe1\0\x22"                                                                                                   \
    "Exif\0\0"                                                                                                         \
    "MM\0*\0\0\0\x08"                                                                                                  \
    "\0\1"                                                                                                             \
    "\1\x12\0\3\0\0\0\1\0" orientation "\0\0"                                                                          \
    "\0\0\0\0"

static void segments_before_the_frame(void **state)
{
    (void)state;
    static const struct {
        const char *what, *bytes;
        size_t n;
        bool taken, rgb;
        int restart, orientation;
    } cases[] = {
#define CASE(what, bytes, ...) { what, bytes, sizeof(bytes) - 1, __VA_ARGS__ }
        CASE("nothing", "", true, false, 0, 1),
        CASE("JFIF", JFIF, true, false, 0, 1),
        CASE("Adobe RGB", ADOBE("\0"), true, true, 0, 1),
        CASE("Adobe YCbCr", ADOBE("\1"), true, false, 0, 1),
        CASE("Adobe unknown", ADOBE("\2"), true, false, 0, 1),
        CASE("JFIF before Adobe", JFIF ADOBE("\0"), true, false, 0, 1),
        CASE("JFIF after Adobe", ADOBE("\0") JFIF, true, false, 0, 1),
        CASE("Adobe cut short",
             "\xff\xee\0\x0d"
             "Adobe\0\x64\0\0\0\0",
             true, false, 0, 1),
        CASE("a comment", "\xff\xfe\0\3x", true, false, 0, 1),
        CASE("a comment of nothing", "\xff\xfe\0\2", true, false, 0, 1),
        CASE("APP15", "\xff\xef\0\3x", true, false, 0, 1),
        CASE("a reserved marker", "\xff\xf0\0\3x", false),
        CASE("fill bytes", "\xff\xff", false),
        CASE("rubbish", "x", false),
        CASE("restart interval", DRI("\4", "\1\2"), true, false, 258, 1),
        CASE("restart interval, the last counts", DRI("\4", "\0\2") DRI("\4", "\0\0"), true, false, 0, 1),
        CASE("restart interval of a wrong size", DRI("\5", "\0\2\0"), false),
        CASE("orientation", EXIF("\6"), true, false, 0, 6),
        CASE("orientation, the first counts", EXIF("\3") EXIF("\6"), true, false, 0, 3),
        CASE("orientation, the first that says one", EXIF("\0") EXIF("\6"), true, false, 0, 6),
        CASE("orientation 9", EXIF("\x09"), true, false, 0, 1),
#undef CASE
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tiny_jpeg spec = usual;
        dr__jpeg_frame f;
        spec.extra = (const uint8_t *)cases[i].bytes;
        spec.n_extra = cases[i].n;
        if (parse_spec(&spec, &f) != cases[i].taken)
            fail_msg("%s", cases[i].what);
        if (cases[i].taken &&
            (f.rgb != cases[i].rgb || f.restart != cases[i].restart || f.orientation != cases[i].orientation))
            fail_msg("%s: RGB %d, restart %d, orientation %d", cases[i].what, f.rgb, (int)f.restart, f.orientation);
    }
}

static void orientation_is_read_only_when_asked_for(void **state)
{
    (void)state;
    struct tiny_jpeg spec = usual;
    dr__jpeg_frame f;
    spec.extra = (const uint8_t *)EXIF("\6");
    spec.n_extra = sizeof EXIF("\6") - 1;
    struct blob b = tiny_header(&spec);
    assert_true(dr__jpeg_parse(b.data, b.size, false, &f));
    assert_int_equal(f.orientation, 1);
    blob_free(&b);
}

static void components_named_rgb(void **state)
{
    (void)state;
    struct blob b = tiny_header(&usual);
    dr__jpeg_frame f;
    const size_t frame = find_segment(&b, 0xc0), scan = find_segment(&b, 0xda);
    for (size_t i = 0; i < 3; i++)
        b.data[frame + 10 + 3 * i] = b.data[scan + 5 + 2 * i] = (uint8_t) "RGB"[i];
    assert_true(dr__jpeg_parse(b.data, b.size, false, &f));
    assert_true(f.rgb);
    b.data[frame + 10] = b.data[scan + 5] = 'r';
    assert_true(dr__jpeg_parse(b.data, b.size, false, &f));
    assert_false(f.rgb);
    blob_free(&b);
}

/* Steps of 16 bits keep their bits, in natural order. */
static void quantisation_of_16_bits(void **state)
{
    (void)state;
    uint8_t segment[4 + 1 + 128] = { 0xff, 0xdb, 0, 2 + 1 + 128, 0x13 };
    for (int i = 0; i < 64; i++) {
        segment[5 + 2 * i] = (uint8_t)(i == 63 ? 0xff : i);
        segment[6 + 2 * i] = (uint8_t)(2 * i);
    }
    struct tiny_jpeg spec = usual;
    dr__jpeg_frame f;
    spec.extra = segment;
    spec.n_extra = sizeof segment;
    assert_true(parse_spec(&spec, &f));
    for (int i = 0; i < 63; i++)
        assert_int_equal(f.quant[3][dr__jpeg_zigzag[i]], i << 8 | 2 * i);
    assert_int_equal((uint16_t)f.quant[3][63], 0xff00 | 126);
}

static void zigzag_is_the_order_of_diagonals(void **state)
{
    (void)state;
    int i = 0;
    for (int sum = 0; sum < 15; sum++)
        for (int k = 0; k <= sum; k++) {
            const int x = sum % 2 ? sum - k : k, y = sum - x;
            if (x < 8 && y < 8)
                assert_int_equal(dr__jpeg_zigzag[i++], 8 * y + x);
        }
    assert_int_equal(i, 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_header_says),
        cmocka_unit_test(every_beginning_of_a_header),
        cmocka_unit_test(sampling_factors),
        cmocka_unit_test(grey_factors),
        cmocka_unit_test(sizes),
        cmocka_unit_test(one_byte_changed),
        cmocka_unit_test(segments_before_the_frame),
        cmocka_unit_test(orientation_is_read_only_when_asked_for),
        cmocka_unit_test(components_named_rgb),
        cmocka_unit_test(quantisation_of_16_bits),
        cmocka_unit_test(zigzag_is_the_order_of_diagonals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
