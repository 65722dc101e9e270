/* hue.c: turning the hue, through Pillow's 8-bit HSV.
 *
 * Pillow mixes float and double on the way (each step below rounds where Pillow's does), and an 8-bit HSV loses
 * colours: even a turn by 0 changes an image, and so it does here.
 */
#include "op/image/adjust.h"

struct hsv {
    uint8_t h, s, v;
};

static struct hsv to_hsv(int r, int g, int b)
{
    int maxc = DR_MAX(r, DR_MAX(g, b)), minc = DR_MIN(r, DR_MIN(g, b));
    if (maxc == minc)
        return (struct hsv){ 0, 0, (uint8_t)maxc };
    float range = (float)(maxc - minc), s = range / (float)maxc;
    float rc = (float)(maxc - r) / range, gc = (float)(maxc - g) / range, bc = (float)(maxc - b) / range;
    float h;
    if (r == maxc)
        h = bc - gc;
    else if (g == maxc)
        h = (float)(2.0 + (double)rc - (double)bc);
    else
        h = (float)(4.0 + (double)gc - (double)rc);
    double turn = (double)h / 6.0 + 1.0; /* 5/6 to 11/6 */
    float fraction = (float)(turn >= 1.0 ? turn - 1.0 : turn);
    return (struct hsv){ (uint8_t)((double)fraction * 255.0), (uint8_t)((double)s * 255.0), (uint8_t)maxc };
}

/* Halves away from zero, for x >= 0. */
static uint8_t round_up(double x)
{
    return (uint8_t)(x + 0.5);
}

/* What each 8-bit hue and saturation means, so that it is divided once for an image and not for each pixel. */
struct circle {
    uint8_t sixth[256];
    float rest[256]; /* of the sixth, 0 to 1 */
    float saturation[256];
};

static void make_circle(struct circle *c)
{
    for (int i = 0; i < 256; i++) {
        double sixths = (double)i * 6.0 / 255.0; /* 0 to 6 */
        c->sixth[i] = (uint8_t)((int)sixths % 6);
        c->rest[i] = (float)(sixths - (double)(int)sixths);
        c->saturation[i] = (float)((double)i / 255.0);
    }
}

static void from_hsv(const struct circle *circle, struct hsv c, uint8_t *rgb)
{
    /* Which of v, q, p, t stands in red, green and blue, for each sixth of the circle. */
    static const uint8_t place[6][3] = { { 0, 3, 2 }, { 1, 0, 2 }, { 2, 0, 3 }, { 2, 1, 0 }, { 3, 2, 0 }, { 0, 2, 1 } };
    if (c.s == 0) {
        rgb[0] = rgb[1] = rgb[2] = c.v;
        return;
    }
    float f = circle->rest[c.h], fs = circle->saturation[c.s], fsf = fs * f;
    double v = c.v;
    uint8_t value[4] = {
        c.v,
        round_up(v * (1.0 - (double)fsf)),
        round_up(v * (1.0 - (double)fs)),
        round_up(v * (1.0 - (double)fs * (1.0 - (double)f))),
    };
    for (int k = 0; k < 3; k++)
        rgb[k] = value[place[circle->sixth[c.h]][k]];
}

static void turn_row(const struct circle *circle, uint8_t *dst, const uint8_t *src, size_t w, uint8_t shift)
{
    for (size_t x = 0; x < w; x++, dst += 3, src += 3) {
        struct hsv c = to_hsv(src[0], src[1], src[2]);
        c.h = (uint8_t)(c.h + shift);
        from_hsv(circle, c, dst);
    }
}

void dr__adjust_hue(const dr_task *task, const dr_view *in, dr_view *out, double factor)
{
    (void)task;
    if (dr__channels(&in->desc) == 1) {
        if (out->data != in->data)
            dr__view_copy(out, in);
        return;
    }
    struct circle circle;
    uint8_t shift = (uint8_t)(int)(factor * 255.0);
    make_circle(&circle);
    for (int64_t y = 0; y < dr__height(&in->desc); y++)
        turn_row(&circle, out->data + y * out->stride, in->data + y * in->stride, (size_t)dr__width(&in->desc), shift);
}
