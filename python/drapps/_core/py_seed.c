/* py_seed.c: the state of a Mersenne Twister from a key, for the global generators of Python, NumPy and torch.
 *
 * All three are MT19937 with 624 words.  The words are hashes of an arithmetic sequence whose start and increment are
 * hashes of the key (base seed, tag of the batch, slot) and of the generator's number: no two of them share a stream.
 * The next draw makes the generator mix its state, which only a sample that draws pays for.
 *
 * fill_seeds writes into memory that Python hands over by address; drapps/procpool/seeds.py checks first that each
 * address holds what is said here.
 */
#include "py_core.h"

enum { N_WORDS = 624, TORCH_BYTES = 5056 };
enum { OF_RANDOM = 1, OF_NUMPY = 2, OF_TORCH = 3 };

struct stream {
    uint64_t at, step;
};

/* Where torch keeps what, in the bytes of Generator.get_state(). */
struct torch_state {
    uint64_t seed; /* what torch.initial_seed() says: stays */
    int32_t left, seeded;
    uint64_t next;
    uint64_t words[N_WORDS];
    uint8_t normals[TORCH_BYTES - 24 - 8 * N_WORDS];
};
_Static_assert(sizeof(struct torch_state) == TORCH_BYTES, "the state of torch's generator has 5056 bytes");

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static struct stream open_stream(uint64_t base_seed, uint64_t tag, uint64_t slot, uint64_t generator)
{
    uint64_t key = mix(base_seed + 0x9e3779b97f4a7c15u);
    key = mix(key ^ (tag + 0xd1b54a32d192ed03u));
    key = mix(key ^ (slot + 0x8cb92ba72f3d8dd7u));
    key = mix(key ^ generator);
    return (struct stream){ key, mix(key + 0x9e3779b97f4a7c15u) | 1 };
}

/* One multiplication for two words is enough here: the generator itself mixes them before the first draw. */
static void fill_words(struct stream s, uint32_t *words)
{
    for (int i = 0; i < N_WORDS; i += 2) {
        uint64_t x = s.at += s.step;
        x = (x ^ x >> 32) * 0xbf58476d1ce4e5b9u;
        x ^= x >> 29;
        words[i] = (uint32_t)x;
        words[i + 1] = (uint32_t)(x >> 32);
    }
    words[0] |= 0x80000000u; /* never all zero */
}

/* Python's random.Random: index and words.  NumPy's MT19937: words and position. */
static void fill_random(struct stream s, void *address)
{
    *(int32_t *)address = N_WORDS;
    fill_words(s, (uint32_t *)address + 1);
}

static void fill_numpy(struct stream s, void *address)
{
    fill_words(s, address);
    ((int32_t *)address)[N_WORDS] = N_WORDS;
}

static void fill_torch(struct stream s, struct torch_state *state)
{
    uint32_t words[N_WORDS];
    fill_words(s, words);
    for (int i = 0; i < N_WORDS; i++)
        state->words[i] = words[i];
    state->left = state->seeded = 1;
    state->next = 0;
    memset(state->normals, 0, sizeof state->normals);
}

PyObject *core_fill_seeds(PyObject *module, PyObject *args)
{
    (void)module;
    uint64_t base_seed, tag, slot, random, numpy, torch;
    if (!PyArg_ParseTuple(args, "O&O&O&O&O&O&:fill_seeds", to_u64, &base_seed, to_u64, &tag, to_u64, &slot, to_u64,
                          &random, to_u64, &numpy, to_u64, &torch))
        return NULL;
    if (random)
        fill_random(open_stream(base_seed, tag, slot, OF_RANDOM), (void *)(uintptr_t)random);
    if (numpy)
        fill_numpy(open_stream(base_seed, tag, slot, OF_NUMPY), (void *)(uintptr_t)numpy);
    if (torch)
        fill_torch(open_stream(base_seed, tag, slot, OF_TORCH), (struct torch_state *)(uintptr_t)torch);
    Py_RETURN_NONE;
}

PyObject *core_seed_words(PyObject *module, PyObject *args)
{
    (void)module;
    uint64_t base_seed, tag, slot, generator;
    if (!PyArg_ParseTuple(args, "O&O&O&O&:seed_words", to_u64, &base_seed, to_u64, &tag, to_u64, &slot, to_u64,
                          &generator))
        return NULL;
    uint32_t words[N_WORDS];
    fill_words(open_stream(base_seed, tag, slot, generator), words);
    return PyBytes_FromStringAndSize((const char *)words, sizeof words);
}

/* --- a new worker --- */

/* The state after numpy.random.seed(key): what MT19937's authors call init_by_array. */
static void seed_by_array(uint32_t *words, const uint32_t *key, int n)
{
    enum { FIRST = 19650218 };
    words[0] = FIRST;
    for (uint32_t i = 1; i < N_WORDS; i++)
        words[i] = 1812433253u * (words[i - 1] ^ words[i - 1] >> 30) + i;
    uint32_t i = 1;
    for (int k = 0; k < N_WORDS; k++) {
        words[i] = (words[i] ^ (words[i - 1] ^ words[i - 1] >> 30) * 1664525u) + key[k % n] + (uint32_t)(k % n);
        if (++i == N_WORDS)
            words[0] = words[N_WORDS - 1], i = 1;
    }
    for (int k = 1; k < N_WORDS; k++) {
        words[i] = (words[i] ^ (words[i - 1] ^ words[i - 1] >> 30) * 1566083941u) - i;
        if (++i == N_WORDS)
            words[0] = words[N_WORDS - 1], i = 1;
    }
    words[0] = 0x80000000u;
}

PyObject *core_seed_numpy(PyObject *module, PyObject *args)
{
    (void)module;
    uint64_t address;
    enum { N_KEY = 4 };
    uint32_t key[N_KEY];
    if (!PyArg_ParseTuple(args, "O&(IIII):seed_numpy", to_u64, &address, &key[0], &key[1], &key[2], &key[3]))
        return NULL;
    uint32_t *words = (uint32_t *)(uintptr_t)address;
    seed_by_array(words, key, N_KEY);
    ((int32_t *)words)[N_WORDS] = N_WORDS;
    Py_RETURN_NONE;
}
