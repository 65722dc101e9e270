/* test_seek_store.c: seek points of many images: kept, found, saved, merged; and files that are not as they were. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/cm.h"
#include "base/alloc.h"
#include "codec/image/seek_store.h"
#include "index/index_stamp.h"

enum { ROWS = 30, MANY = 400, LIMIT = 64 << 20 };

static char folder[64], path[128], cache[128];

/* Image i: its key and the first n of its points.  Everything follows from i, so that what comes back can be checked.
 */
static dr__seek_key key_of(uint32_t i)
{
    uint8_t bytes[100] = { (uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i >> 16), 7 };
    return dr__seek_key_of(bytes, sizeof bytes);
}

static dr__seek_point point_of(uint32_t i, uint32_t row)
{
    return (dr__seek_point){ 5000 + i + row * (uint64_t)(2000 + i % 997), { (int32_t)(i + row * 17) % 800, -3, 5 } };
}

static void put_some(dr__seek_store *store, uint32_t i, uint32_t n)
{
    dr__seek_points points = { .total = ROWS };
    dr__seek_key key = key_of(i);
    for (uint32_t row = 0; row < n; row++) {
        dr__seek_point p = point_of(i, row);
        assert_true(dr__seek_add(&points, &p));
    }
    dr__seek_store_put(store, &key, &points);
    dr__seek_free(&points);
}

/* How many points of image i are known; those that are must be right. */
static uint32_t known(dr__seek_store *store, uint32_t i)
{
    dr__seek_points points = { 0 };
    dr__seek_key key = key_of(i);
    bool found = dr__seek_store_find(store, &key, &points);
    uint32_t n = points.n;
    assert_int_equal(found, n > 0);
    for (uint32_t row = 0; row < n; row++) {
        dr__seek_point p = point_of(i, row);
        assert_true(points.at[row].bit == p.bit);
        assert_memory_equal(points.at[row].dc, p.dc, sizeof p.dc);
    }
    dr__seek_free(&points);
    return n;
}

static uint32_t count_known(dr__seek_store *store, uint32_t from, uint32_t to)
{
    uint32_t n = 0;
    for (uint32_t i = from; i < to; i++)
        n += known(store, i) == ROWS;
    return n;
}

static dr__seek_store *open_at(const char *beside, size_t limit)
{
    dr_error err = { 0 };
    dr__seek_store *store = NULL;
    assert_ok(dr__seek_store_open(beside, "test data", limit, &store, &err));
    return store;
}

static dr__seek_counts counts_of(dr__seek_store *store)
{
    dr__seek_counts c;
    dr__seek_store_counts(store, &c);
    return c;
}

static void put_range(dr__seek_store *store, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        put_some(store, i, ROWS);
}

/* A file with images [from, to). */
static void make_file(uint32_t from, uint32_t to)
{
    dr__seek_store *store = open_at(path, LIMIT);
    put_range(store, from, to);
    assert_true(dr__seek_store_save(store, true));
    dr__seek_store_close(&store);
}

static int files_in(const char *where)
{
    char command[256];
    snprintf(command, sizeof command, "exit $(ls -A '%s' 2>/dev/null | wc -l)", where);
    return WEXITSTATUS(system(command));
}

static uint8_t *load(size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && !fstat(fd, &st));
    uint8_t *data = malloc((size_t)st.st_size);
    *size = (size_t)read(fd, data, (size_t)st.st_size);
    close(fd);
    return data;
}

static void store_bytes(const uint8_t *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
}

static int setup(void **state)
{
    (void)state;
    /* In memory if possible: these tests save hundreds of times, and each save waits for the disk. */
    strcpy(folder, access("/dev/shm", W_OK) == 0 ? "/dev/shm/drapps-seek-XXXXXX" : "/tmp/drapps-seek-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/data/.drapps-seek", folder);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    char data[100];
    snprintf(data, sizeof data, "%s/data", folder);
    mkdir(data, 0755);
    mkdir(cache, 0755);
    return setenv("XDG_CACHE_HOME", cache, 1);
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* --- memory --- */

static void points_are_found_again(void **state)
{
    (void)state;
    dr_error err;
    dr__seek_store *store = NULL;
    assert_ok(dr__seek_store_open(NULL, NULL, LIMIT, &store, &err));
    assert_int_equal(known(store, 1), 0);
    put_some(store, 1, 10);
    put_some(store, 2, ROWS);
    assert_int_equal(known(store, 1), 10);
    put_some(store, 1, 20); /* reaches further */
    put_some(store, 1, 15); /* does not */
    assert_int_equal(known(store, 1), 20);
    assert_int_equal(known(store, 2), ROWS);
    dr__seek_counts c = counts_of(store);
    assert_int_equal(c.images, 2);
    assert_int_equal(c.found, 3);
    assert_int_equal(c.missed, 1);
    assert_int_equal(c.file_bytes, 0);
    assert_false(dr__seek_store_save(store, true)); /* no place */
    dr__seek_store_close(&store);
}

static void the_limit_is_kept(void **state)
{
    (void)state;
    dr__seek_store *store = open_at(path, 100000);
    put_range(store, 0, 2000);
    dr__seek_counts c = counts_of(store);
    assert_in_range(c.images, 100, 600);
    assert_in_range(c.memory_bytes, 50000, 101000);
    assert_int_equal(count_known(store, 0, 2000), c.images);
    assert_true(dr__seek_store_is_full(store));
    assert_true(dr__seek_store_save(store, false));
    assert_false(dr__seek_store_is_full(store)); /* what is in the file needs no memory */
    assert_in_range(counts_of(store).memory_bytes, 0, 20000);
    put_range(store, 1000, 2000);
    assert_true(counts_of(store).images > c.images);
    dr__seek_store_close(&store);
}

struct job {
    dr__seek_store *store;
    uint32_t start;
};

/* Every image grows in steps while others look it up and one saves. */
static void *use_store(void *arg)
{
    const struct job *j = arg;
    for (uint32_t n = 1; n <= ROWS; n += 7)
        for (uint32_t i = 0; i < MANY; i++) {
            uint32_t image = (i + j->start) % MANY;
            put_some(j->store, image, n);
            assert_true(known(j->store, image) >= n);
        }
    return NULL;
}

static void *save_store(void *arg)
{
    const struct job *j = arg;
    for (int i = 0; i < 10; i++)
        dr__seek_store_save(j->store, true);
    return NULL;
}

static void many_threads(void **state)
{
    (void)state;
    dr__seek_store *store = open_at(path, LIMIT);
    struct job jobs[6];
    pthread_t threads[6];
    for (int i = 0; i < 6; i++) {
        jobs[i] = (struct job){ store, (uint32_t)i * 70 };
        assert_int_equal(pthread_create(&threads[i], NULL, i < 4 ? use_store : save_store, &jobs[i]), 0);
    }
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(known(store, i), 29);
    assert_int_equal(counts_of(store).images, MANY); /* each once, also those that grew while they were saved */
    dr__seek_store_close(&store);
}

static void short_memory_is_no_error(void **state)
{
    (void)state;
    make_file(0, 100);
    for (long n = 1; n < 60; n++) {
        dr__seek_store *store = NULL;
        dr__alloc_fail_at(n, true);
        if (dr__seek_store_open(path, "test data", LIMIT, &store, NULL) == DR_OK) {
            dr__seek_points p = { .total = 1, .n = 1, .at = &(dr__seek_point){ 9, { 1 } } };
            for (uint32_t i = 500; i < 510; i++) {
                dr__seek_key key = key_of(i);
                dr__seek_store_put(store, &key, &p);
            }
            dr__seek_store_save(store, true);
        }
        dr__alloc_fail_at(0, false);
        dr__seek_store_close(&store);
    }
    dr__seek_store *store = open_at(path, LIMIT);
    assert_int_equal(count_known(store, 0, 100), 100);
    dr__seek_store_close(&store);
    assert_int_equal(files_in(cache), 0);
}

/* --- the file --- */

static void a_file_is_found_by_the_next_run(void **state)
{
    (void)state;
    dr__seek_store *store = open_at(path, LIMIT);
    put_range(store, 0, MANY);
    uint64_t before = counts_of(store).memory_bytes;
    assert_true(dr__seek_store_save(store, false));
    assert_int_equal(count_known(store, 0, MANY), MANY); /* now from the file */
    assert_true(counts_of(store).memory_bytes < before / 8);
    dr__seek_store_close(&store);

    store = open_at(path, LIMIT);
    dr__seek_counts c = counts_of(store);
    assert_int_equal(c.images, MANY);
    assert_in_range(c.file_bytes, MANY * 100, MANY * 300);
    assert_int_equal(count_known(store, 0, MANY), MANY);
    assert_int_equal(count_known(store, MANY, 2 * MANY), 0);
    dr__seek_store_close(&store);
    assert_int_equal(files_in(cache), 0);
}

static void saves_are_merged(void **state)
{
    (void)state;
    make_file(0, MANY);
    dr__seek_store *a = open_at(path, LIMIT), *b = open_at(path, LIMIT);
    put_range(a, MANY, 2 * MANY);
    put_range(b, 2 * MANY, 3 * MANY);
    put_some(b, 5 * MANY, 12);
    put_some(a, 5 * MANY, 20);
    assert_true(dr__seek_store_save(a, true));
    assert_true(dr__seek_store_save(b, true)); /* the file is newer than when b opened it */
    assert_int_equal(count_known(b, 0, 3 * MANY), 3 * MANY);
    assert_int_equal(known(b, 5 * MANY), 20); /* more points win */
    assert_int_equal(counts_of(b).images, 3 * MANY + 1);
    dr__seek_store_close(&a);
    dr__seek_store_close(&b);
}

/* What grows is saved over what was shorter, and an image is counted once. */
static void longer_points_win(void **state)
{
    (void)state;
    dr__seek_store *store = open_at(path, LIMIT);
    for (uint32_t i = 0; i < MANY; i++)
        put_some(store, i, 20);
    assert_true(dr__seek_store_save(store, true));
    put_range(store, 0, MANY);
    assert_int_equal(counts_of(store).images, MANY);
    assert_true(dr__seek_store_save(store, true));
    put_some(store, 3, 4); /* shorter than what the file has */
    assert_int_equal(counts_of(store).images, MANY);
    assert_int_equal(count_known(store, 0, MANY), MANY);
    dr__seek_store_close(&store);
}

/* A note by the name i, whose content is image i of that round. */
static dr__jpeg_note note_of(uint32_t i, uint32_t round)
{
    dr__jpeg_note note = { .content = key_of(i + 100000 * round), .version = 1 + round };
    note.head = (dr__jpeg_head){ .scan = 60 + i % 30, .orientation = 1 + (int)i % 8, .size = 8 };
    const uint8_t head[] = { 0xff, 0xd8, 0xff, 0xdb, 0, 4, (uint8_t)i, (uint8_t)round };
    memcpy(note.head.bytes, head, sizeof head);
    return note;
}

static void put_note(dr__seek_store *store, uint32_t i, uint32_t round)
{
    dr__jpeg_note note = note_of(i, round);
    dr__seek_store_put_note(store, UINT64_C(0x9E3779B97F4A7C15) * i, &note);
}

/* Of the round that is found; -1: none. */
static int noted(dr__seek_store *store, uint32_t i)
{
    dr__jpeg_note note;
    if (!dr__seek_store_find_note(store, UINT64_C(0x9E3779B97F4A7C15) * i, &note))
        return -1;
    const uint32_t round = note.head.bytes[7];
    const dr__jpeg_note want = note_of(i, round);
    assert_true(want.content.hash == note.content.hash && want.content.size == note.content.size);
    assert_int_equal(note.version, want.version);
    assert_true(note.when > 0 && note.head.scan == want.head.scan && note.head.orientation == want.head.orientation);
    assert_int_equal(note.head.size, want.head.size);
    assert_memory_equal(note.head.bytes, want.head.bytes, want.head.size);
    return (int)round;
}

/* Beside the points, in memory and in the file; the last one of a name counts, wherever it is. */
static void notes_are_kept_and_replaced(void **state)
{
    (void)state;
    dr__seek_store *store = open_at(path, LIMIT);
    for (uint32_t i = 0; i < MANY; i++)
        put_note(store, i, 0);
    put_range(store, 0, MANY);
    for (uint32_t i = 0; i < MANY; i += 2)
        put_note(store, i, 1);
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(noted(store, i), i % 2 == 0);
    assert_int_equal(noted(store, MANY), -1);
    assert_int_equal(counts_of(store).images, MANY);
    assert_true(dr__seek_store_save(store, true));
    for (uint32_t i = 0; i < MANY; i += 3)
        put_note(store, i, 2);
    put_range(store, MANY, 2 * MANY);
    for (int again = 0; again < 2; again++) {
        for (uint32_t i = 0; i < MANY; i++)
            assert_int_equal(noted(store, i), i % 3 == 0 ? 2 : i % 2 == 0);
        assert_int_equal(count_known(store, 0, 2 * MANY), 2 * MANY);
        assert_int_equal(counts_of(store).images, 2 * MANY);
        if (!again) { /* now from the file that was merged */
            assert_true(dr__seek_store_save(store, true));
            dr__seek_store_close(&store);
            store = open_at(path, LIMIT);
        }
    }
    dr__seek_store_close(&store);
}

static void nothing_new_is_not_written(void **state)
{
    (void)state;
    struct stat first, second;
    dr__seek_store *store = open_at(path, LIMIT);
    put_range(store, 0, 3);
    assert_true(dr__seek_store_save(store, true)); /* too little for a file in the user's data */
    assert_int_not_equal(access(path, F_OK), 0);
    dr__seek_store_close(&store);

    make_file(0, 3000);
    assert_int_equal(stat(path, &first), 0);
    store = open_at(path, LIMIT);
    assert_true(dr__seek_store_save(store, true)); /* nothing */
    put_range(store, 3000, 3100);
    assert_true(dr__seek_store_save(store, false)); /* less than a 16th */
    assert_int_equal(stat(path, &second), 0);
    assert_true(first.st_ino == second.st_ino);
    assert_true(dr__seek_store_save(store, true));
    assert_int_equal(stat(path, &second), 0);
    assert_true(first.st_ino != second.st_ino);
    assert_int_equal(counts_of(store).images, 3100);
    dr__seek_store_close(&store);
}

/* Each byte of the file with a bit flipped: an image is found as it was, or not at all. */
static void damage_is_absence(void **state)
{
    (void)state;
    size_t size;
    uint32_t least = MANY, n = 120;
    make_file(0, n);
    uint8_t *data = load(&size);
    for (size_t i = 0; i < size; i++) {
        data[i] ^= (uint8_t)(1 << i % 8);
        store_bytes(data, size);
        data[i] ^= (uint8_t)(1 << i % 8);
        dr__seek_store *store = open_at(path, LIMIT);
        uint32_t found = 0;
        for (uint32_t k = i % 4; k < n; k += 4)
            found += known(store, k) > 0;
        least = i > 200 && i < size - DR__INDEX_STAMP_BYTES && found < least ? found : least;
        dr__seek_store_close(&store);
    }
    assert_true(least > n / 8); /* one bucket is lost, not all */
    free(data);
}

static void truncation_is_absence(void **state)
{
    (void)state;
    size_t size;
    make_file(0, 120);
    uint8_t *data = load(&size);
    for (size_t i = 0; i < size; i += 61) {
        store_bytes(data, i);
        dr__seek_store *store = open_at(path, LIMIT);
        assert_in_range(count_known(store, 0, 120), 0, 119);
        if (i % (61 * 40) == 0) { /* a save waits for the disk */
            put_range(store, 120, 240);
            assert_true(dr__seek_store_save(store, true)); /* merging takes what is whole */
            assert_int_equal(count_known(store, 120, 240), 120);
        }
        dr__seek_store_close(&store);
    }
    free(data);
}

/* A file that came from elsewhere is not believed, whatever it says: here what a copy says is even true. */
static void a_copied_file_is_ignored(void **state)
{
    (void)state;
    size_t size;
    make_file(0, 120);
    uint8_t *data = load(&size);
    unlink(path);
    store_bytes(data, size);
    free(data);
    dr__seek_store *store = open_at(path, LIMIT);
    assert_int_equal(count_known(store, 0, 120), 0);
    put_range(store, 120, 240);
    assert_true(dr__seek_store_save(store, true));
    assert_int_equal(count_known(store, 0, 240), 120); /* nothing of it was merged */
    dr__seek_store_close(&store);
}

static void a_file_of_another_user_is_left_alone(void **state)
{
    (void)state;
    struct stat before, after;
    make_file(0, 120);
    if (chown(path, 65534, (gid_t)-1)) { /* needs root */
        skip();
        return;
    }
    assert_int_equal(stat(path, &before), 0);
    dr__seek_store *store = open_at(path, LIMIT);
    assert_int_equal(count_known(store, 0, 120), 0);
    put_range(store, 120, 240);
    assert_true(dr__seek_store_save(store, true));
    dr__seek_store_close(&store);
    assert_true(!stat(path, &after) && before.st_ino == after.st_ino);
    assert_int_equal(files_in(cache), 1);
    store = open_at(path, LIMIT);
    assert_int_equal(count_known(store, 0, 240), 120);
    dr__seek_store_close(&store);
}

static void foreign_files_are_ignored(void **state)
{
    (void)state;
    static const char *const texts[] = { "", "x", "DRIDX\r\n\x1a and so on, for longer than a header is",
                                         "DRSEK\r\n\x1a\1\0\0\0\377\377\377\377 n_buckets without end" };
    for (int i = 0; i < 4; i++) {
        store_bytes((const uint8_t *)texts[i], i == 3 ? 38 : strlen(texts[i]));
        dr__seek_store *store = open_at(path, LIMIT);
        assert_int_equal(counts_of(store).images, 0);
        put_range(store, 0, 100);
        assert_true(dr__seek_store_save(store, true));
        assert_int_equal(count_known(store, 0, 100), 100);
        dr__seek_store_close(&store);
    }
    unlink(path);
    assert_int_equal(mkdir(path, 0755), 0); /* a folder of that name: the cache folder takes it */
    make_file(0, 100);
    assert_int_equal(files_in(cache), 1);
    dr__seek_store *store = open_at(path, LIMIT);
    assert_int_equal(count_known(store, 0, 100), 100);
    dr__seek_store_close(&store);
}

static void the_file_may_go_while_in_use(void **state)
{
    (void)state;
    make_file(0, MANY);
    dr__seek_store *store = open_at(path, LIMIT);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(count_known(store, 0, MANY), MANY); /* still open */
    put_range(store, MANY, 2 * MANY);
    assert_true(dr__seek_store_save(store, true));
    assert_int_equal(truncate(path, 300), 0);
    assert_int_equal(count_known(store, 0, 2 * MANY), 0); /* cut off under our hands */
    put_range(store, 0, 200);
    assert_int_equal(count_known(store, 0, 200), 200);
    assert_true(dr__seek_store_save(store, true));
    assert_int_equal(count_known(store, 0, 200), 200);
    dr__seek_store_close(&store);
}

static void a_place_that_cannot_be_written_is_no_error(void **state)
{
    (void)state;
    char nowhere[160];
    snprintf(nowhere, sizeof nowhere, "%s/data/missing/.drapps-seek", folder);
    dr__seek_store *store = open_at(nowhere, LIMIT);
    put_range(store, 0, 100);
    assert_true(dr__seek_store_save(store, true)); /* in the cache folder */
    assert_int_equal(count_known(store, 0, 100), 100);
    dr__seek_store_close(&store);
    assert_int_equal(files_in(cache), 1);

    setenv("XDG_CACHE_HOME", "/proc/none", 1);
    store = open_at(nowhere, LIMIT);
    put_range(store, 0, 100);
    assert_false(dr__seek_store_save(store, true));
    assert_int_equal(count_known(store, 0, 100), 100); /* still in memory */
    dr__seek_store_close(&store);
    setenv("XDG_CACHE_HOME", cache, 1);
}

/* The data is another's: what is found goes to the cache folder, whose file then knows more. */
static int use_read_only(const char *data)
{
    if (geteuid() == 0 && setuid(65534)) /* root writes anywhere */
        return 2;
    dr__seek_store *store = open_at(path, LIMIT);
    put_range(store, 100, 200);
    bool saved = access(data, W_OK) && dr__seek_store_save(store, true);
    dr__seek_store_close(&store);
    store = open_at(path, LIMIT);
    return !saved || count_known(store, 0, 200) != 200;
}

static void a_read_only_folder(void **state)
{
    (void)state;
    char data[100];
    int status;
    struct stat before, after;
    snprintf(data, sizeof data, "%s/data", folder);
    make_file(0, 100);
    assert_int_equal(stat(path, &before), 0);
    chmod(folder, 0755);
    chmod(cache, 0777);
    chmod(data, 0555);
    if (fork() == 0)
        _exit(use_read_only(data));
    wait(&status);
    assert_int_equal(WEXITSTATUS(status), 0);
    char own[160];
    snprintf(own, sizeof own, "%s/own", cache); /* what that user has kept is not ours */
    mkdir(own, 0700);
    setenv("XDG_CACHE_HOME", own, 1);
    dr__seek_store *store = open_at(path, LIMIT); /* as root, too, what was made read-only is left alone */
    put_range(store, 200, 400);
    assert_true(dr__seek_store_save(store, true));
    dr__seek_store_close(&store);
    assert_true(!stat(path, &after) && before.st_ino == after.st_ino);
    store = open_at(path, LIMIT);
    assert_int_equal(count_known(store, 0, 400), 300);
    dr__seek_store_close(&store);
    chmod(data, 0755);
    setenv("XDG_CACHE_HOME", cache, 1);
}

static void a_full_disk(void **state)
{
    (void)state;
    char disk[100], file[128];
    snprintf(disk, sizeof disk, "%s/disk", folder);
    snprintf(file, sizeof file, "%s/.drapps-seek", disk);
    mkdir(disk, 0755);
    if (mount("none", disk, "tmpfs", 0, "size=128k")) { /* needs root */
        skip();
        return;
    }
    setenv("XDG_CACHE_HOME", disk, 1);
    dr__seek_store *store = open_at(file, LIMIT);
    put_range(store, 0, 200);
    assert_true(dr__seek_store_save(store, true));
    put_range(store, 200, 3000);
    bool saved = dr__seek_store_save(store, true);
    uint32_t found = count_known(store, 0, 3000);
    int left = files_in(disk);
    dr__seek_store_close(&store);
    store = open_at(file, LIMIT);
    uint32_t later = count_known(store, 0, 200);
    dr__seek_store_close(&store);
    setenv("XDG_CACHE_HOME", cache, 1);
    umount(disk);
    assert_false(saved);
    assert_int_equal(found, 3000);
    assert_in_range(left, 1, 2); /* the file, and perhaps the folder of the cache */
    assert_int_equal(later, 200);
}

/* --- processes --- */

static void save_in_child(uint32_t part)
{
    dr__seek_store *store = open_at(path, LIMIT);
    put_range(store, part * MANY, (part + 1) * MANY);
    dr__seek_store_save(store, true);
    _exit(count_known(store, part * MANY, (part + 1) * MANY) != MANY);
}

static void processes_save_at_once(void **state)
{
    (void)state;
    enum { N = 5 };
    int status;
    for (uint32_t i = 0; i < N; i++)
        if (fork() == 0)
            save_in_child(i);
    for (int i = 0; i < N; i++) {
        wait(&status);
        assert_int_equal(status, 0);
    }
    dr__seek_store *store = open_at(path, LIMIT);
    assert_int_equal(count_known(store, 0, N * MANY), N * MANY);
    dr__seek_store_close(&store);
    assert_int_equal(files_in(cache), 0);
}

static bool fork_in_fsync;
static pid_t forked;

/* Instead of the C library's: a save is in flight, and its lock is held. */
int fsync(int fd)
{
    if (fork_in_fsync && (forked = fork()) == 0) {
        pause();
        _exit(0);
    }
    return (int)syscall(SYS_fsync, fd);
}

static void a_child_forked_while_saving_keeps_no_lock(void **state)
{
    (void)state;
    dr__seek_store *store = open_at(path, LIMIT);
    put_range(store, 0, 200);
    fork_in_fsync = true;
    assert_true(dr__seek_store_save(store, true));
    fork_in_fsync = false;
    assert_true(forked > 0);
    char data[160];
    snprintf(data, sizeof data, "%s/data", folder);
    int fd = open(data, O_RDONLY | O_DIRECTORY), locked = flock(fd, LOCK_EX | LOCK_NB);
    close(fd);
    kill(forked, SIGKILL);
    waitpid(forked, NULL, 0);
    assert_int_equal(locked, 0);
    dr__seek_store_close(&store);
}

static void a_forked_child_leaves_it_alone(void **state)
{
    (void)state;
    dr__seek_store *store = open_at(path, LIMIT);
    put_range(store, 0, 200);
    pid_t child = fork();
    if (child == 0) {
        put_some(store, 300, ROWS);
        bool used = known(store, 1) || dr__seek_store_save(store, true) || counts_of(store).images;
        dr__seek_store_close(&store);
        _exit(used || access(path, F_OK) == 0);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(count_known(store, 0, 200), 200);
    dr__seek_store_close(&store);
}

#define with_folder(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_folder(points_are_found_again),
        with_folder(the_limit_is_kept),
        with_folder(many_threads),
        with_folder(short_memory_is_no_error),
        with_folder(a_file_is_found_by_the_next_run),
        with_folder(saves_are_merged),
        with_folder(longer_points_win),
        with_folder(notes_are_kept_and_replaced),
        with_folder(nothing_new_is_not_written),
        with_folder(damage_is_absence),
        with_folder(truncation_is_absence),
        with_folder(a_copied_file_is_ignored),
        with_folder(a_file_of_another_user_is_left_alone),
        with_folder(foreign_files_are_ignored),
        with_folder(the_file_may_go_while_in_use),
        with_folder(a_place_that_cannot_be_written_is_no_error),
        with_folder(a_read_only_folder),
        with_folder(a_full_disk),
        with_folder(processes_save_at_once),
        with_folder(a_child_forked_while_saving_keeps_no_lock),
        with_folder(a_forked_child_leaves_it_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
