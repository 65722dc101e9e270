/* test_segmentation.c: outlines and run lengths by hand; test_coco.py compares them with pycocotools. */
#include "unit/cm.h"

#include "codec/image/segmentation.h"

enum { ROOM = 256 };

static dr_error err;
static dr__segmentation info;
static uint8_t planes[ROOM], room[ROOM];

static dr_status decode(const char *text)
{
    memset(planes, 9, sizeof planes);
    DR_TRY(dr__segmentation_header(text, strlen(text), &info, &err));
    assert_true(info.n * info.height * info.width <= ROOM);
    return dr__segmentation_decode(text, strlen(text), &info, room, planes, &err);
}

/* rows: all planes, one row after the other, as '.' and '#'. */
static void gives(const char *text, const char *rows)
{
    if (decode(text) != DR_OK)
        fail_msg("%s", err.text);
    assert_int_equal(strlen(rows), info.n * info.height * info.width);
    for (size_t i = 0; rows[i]; i++)
        if (planes[i] != (rows[i] == '#'))
            fail_msg("%s: pixel %zu is %d", text, i, planes[i]);
    assert_int_equal(planes[strlen(rows)], 9);
}

static void polygons_are_filled(void **state)
{
    (void)state;
    gives("{\"size\":[4,5],\"objects\":[[[1,1,4,1,4,3,1,3]]]}", "....."
                                                                ".###."
                                                                ".###."
                                                                ".....");
    gives("{\"size\":[2,3],\"objects\":[[[-9,-9,9,-9,9,9,-9,9]]]}", "######");
    gives("{\"size\":[2,4],\"objects\":[[[0,0,1,0,1,2,0,2],[3,0,4,0,4,2,3,2],[0,0,1,0,1,2,0,2]]]}", "#..##..#");
    gives("{\"size\":[2,2],\"objects\":[[[0,0,1,0,1,1,0,1]],[[1,1,2,1,2,2,1,2]]]}", "#......#");
    gives("{\"size\":[2,2],\"objects\":[]}", "");
    gives(" { \"size\" : [ 2 , 2 ] , \"objects\" : [ [ [ 0 , 0 , 1 , 0 , 1 , 1 , 0 , 1 ] ] ] } ", "#...");
}

static void runs_go_down_the_columns(void **state)
{
    (void)state;
    gives("{\"size\":[3,2],\"objects\":[{\"size\":[3,2],\"counts\":[1,3,2]}]}", ".##.#.");
    gives("{\"size\":[3,2],\"objects\":[{\"size\":[3,2],\"counts\":[0,6]}]}", "######");
    gives("{\"size\":[3,2],\"objects\":[{\"size\":[3,2],\"counts\":\"132\"}]}", ".##.#.");
    gives("{\"size\":[3,2],\"objects\":[{\"size\":[3,2],\"counts\":[0,1,1,1,1,1,1]}]}", "#..##.");
}

static void refuses(const char *text, const char *why)
{
    assert_int_equal(decode(text), DR_ERR_FORMAT);
    if (!strstr(err.text, why))
        fail_msg("wanted \"%s\", got \"%s\"", why, err.text);
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    refuses("", "which it is not");
    refuses("{\"size\":[0,4],\"objects\":[]}", "from 1 to 65535");
    refuses("{\"size\":[4,4.5],\"objects\":[]}", "from 1 to 65535");
    refuses("{\"size\":[4,4],\"objects\":[[[1,1,2,2,3,3]", "ends early");
    refuses("{\"size\":[4,4],\"objects\":[[]]}", "a polygon is missing");
    refuses("{\"size\":[4,4],\"objects\":[5]}", "object 0: must be a list of polygons or run lengths");
    refuses("{\"size\":[4,4],\"objects\":[[[1,1,2,2]]]}", "fewer than three points");
    refuses("{\"size\":[4,4],\"objects\":[{\"size\":[4,4],\"counts\":[8,9]}]}", "beyond the last pixel");
    refuses("{\"size\":[4,4],\"objects\":[{\"size\":[4,4],\"counts\":\"8\"}]}", "end before the last pixel");
    refuses("{\"size\":[4,4],\"objects\":[{\"size\":[4,4],\"counts\":5}]}", "a list or a text");
    refuses("{\"size\":[4,4],\"objects\":[]]", "more is there");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(polygons_are_filled),
        cmocka_unit_test(runs_go_down_the_columns),
        cmocka_unit_test(what_is_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
