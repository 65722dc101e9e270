/* feed.c: see feed.h. */
#include "feed.h"

#include <math.h>

#include "base/clock.h"
#include "base/compiler.h"

enum { LINE = 64 / sizeof(float), SUMS = 8 };
_Static_assert(SAMPLE % (LINE * SUMS) == 0, "a batch is read in whole steps");

void feed_open(struct feed *feed, const float *ring)
{
    *feed = (struct feed){ .ring = ring };
    pthread_mutex_init(&feed->lock, NULL);
    pthread_cond_init(&feed->filled, NULL);
    pthread_cond_init(&feed->emptied, NULL);
}

void feed_close(struct feed *feed)
{
    pthread_mutex_destroy(&feed->lock);
    pthread_cond_destroy(&feed->filled);
    pthread_cond_destroy(&feed->emptied);
}

void feed_begin(struct feed *feed, size_t samples)
{
    feed->samples = samples;
    feed->n_read = feed->samples_read = 0;
    feed->read_ns = 0;
}

/* The last batch of a run may be shorter. */
static size_t size_of(const struct feed *feed, size_t batch)
{
    return DR_MIN((size_t)BATCH, feed->samples - batch * BATCH);
}

void feed_wait_for_room(struct feed *feed, size_t sample)
{
    pthread_mutex_lock(&feed->lock);
    while (sample / BATCH >= feed->n_read + BATCHES)
        pthread_cond_wait(&feed->emptied, &feed->lock);
    pthread_mutex_unlock(&feed->lock);
}

void feed_sample_made(struct feed *feed, size_t sample)
{
    const size_t batch = sample / BATCH;
    pthread_mutex_lock(&feed->lock);
    if (++feed->made[batch % BATCHES] == size_of(feed, batch))
        pthread_cond_signal(&feed->filled);
    pthread_mutex_unlock(&feed->lock);
}

static float read_lines(const float *at, size_t n)
{
    float sums[SUMS] = { 0 }, sum = 0;
    for (size_t i = 0; i < n; i += LINE * SUMS)
        for (size_t k = 0; k < SUMS; k++)
            sums[k] += at[i + k * LINE];
    for (size_t k = 0; k < SUMS; k++)
        sum += sums[k];
    return sum;
}

static void wait_for_batch(struct feed *feed, size_t batch)
{
    pthread_mutex_lock(&feed->lock);
    while (feed->made[batch % BATCHES] < size_of(feed, batch))
        pthread_cond_wait(&feed->filled, &feed->lock);
    pthread_mutex_unlock(&feed->lock);
}

static void let_go(struct feed *feed, size_t batch)
{
    pthread_mutex_lock(&feed->lock);
    feed->made[batch % BATCHES] = 0;
    feed->n_read++;
    pthread_cond_broadcast(&feed->emptied);
    pthread_mutex_unlock(&feed->lock);
}

void *feed_read(void *argument)
{
    struct feed *feed = argument;
    for (size_t batch = 0; batch * BATCH < feed->samples; batch++) {
        wait_for_batch(feed, batch);
        const uint64_t began = dr__thread_cpu_ns();
        const size_t n = size_of(feed, batch);
        if (!isfinite(read_lines(feed->ring + (batch % BATCHES) * BATCH * SAMPLE, n * SAMPLE)))
            die("is not a number", "a sample");
        feed->read_ns += dr__thread_cpu_ns() - began;
        feed->samples_read += n;
        let_go(feed, batch);
    }
    return NULL;
}
