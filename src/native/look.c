/* Whether bytes may hold a secret: the first look, which clears nearly all; see `codec/leaks`. */
#include "native.h"

enum { RUN = 20, GRAM = 3, BEFORE = 5, RUNS_MAX = 200, RUNS_SHARE = 16 };

static const char ARMOUR[] = "-----BEGIN ";
static const char HOOK[] = "hooks.slack.com/services/T";

/* What a run is made of: letters and digits of ASCII, `_` and `-`. */
static bool in_run[256];

static void ready(void)
{
    for (int byte = 0; byte < 128; byte++)
        in_run[byte] = Py_ISALNUM(byte) || byte == '_' || byte == '-';
}

bool signs_read(PyObject *given, Signs *signs)
{
    if (!PyTuple_CheckExact(given) || PyTuple_GET_SIZE(given) != 2 ||
        !PyBytes_CheckExact(PyTuple_GET_ITEM(given, 0)) ||
        !PyTuple_CheckExact(PyTuple_GET_ITEM(given, 1))) {
        PyErr_SetString(PyExc_TypeError, "signs are a tuple of bytes and a tuple");
        return false;
    }
    signs->grams = (const uint8_t *)PyBytes_AS_STRING(PyTuple_GET_ITEM(given, 0));
    signs->grams_length = (size_t)PyBytes_GET_SIZE(PyTuple_GET_ITEM(given, 0));
    signs->loose = PyTuple_GET_ITEM(given, 1);
    return true;
}

static bool holds(const uint8_t *data, size_t length, const char *needle, size_t needle_length)
{
    const uint8_t *at = data, *end = data + length;
    if (needle_length == 0)
        return true;
    while ((size_t)(end - at) >= needle_length) {
        size_t places = (size_t)(end - at) - needle_length + 1;
        at = memchr(at, needle[0], places);
        if (at == NULL)
            return false;
        if (memcmp(at, needle, needle_length) == 0)
            return true;
        at++;
    }
    return false;
}

static bool has_gram(const uint8_t *from, const uint8_t *end, const Signs *signs)
{
    bool begins[256] = {false};
    for (size_t n = 0; n < signs->grams_length; n += GRAM)
        begins[signs->grams[n]] = true;
    for (; end - from >= GRAM; from++)
        if (begins[*from])
            for (size_t n = 0; n < signs->grams_length; n += GRAM)
                if (memcmp(from, signs->grams + n, GRAM) == 0)
                    return true;
    return false;
}

#ifdef __SSE2__

#include <emmintrin.h>

enum { BLOCK = 64, PART = 16 };

/* Which of 16 bytes may stand in a run, a bit for each. */
static uint64_t mask(const uint8_t *data)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)data);
    __m128i letter = _mm_sub_epi8(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), _mm_set1_epi8('a'));
    __m128i digit = _mm_sub_epi8(bytes, _mm_set1_epi8('0'));
    __m128i is_letter = _mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(25)), letter);
    __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(digit, _mm_set1_epi8(9)), digit);
    __m128i is_line = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('_')),
                                   _mm_cmpeq_epi8(bytes, _mm_set1_epi8('-')));
    __m128i is_any = _mm_or_si128(_mm_or_si128(is_letter, is_digit), is_line);
    return (uint64_t)(unsigned)_mm_movemask_epi8(is_any);
}

/* Where the next run of at least `RUN` bytes begins; `length` where none does. Without a branch
 * for each word: prose has many. */
static size_t next_run(const uint8_t *data, size_t at, size_t length)
{
    uint8_t last[BLOCK] = {0};
    for (uint64_t before = 0; at < length; at += BLOCK) {
        const uint8_t *block = data + at;
        if (length - at < BLOCK)
            block = memcpy(last, block, length - at);
        uint64_t now = mask(block) | mask(block + PART) << PART;
        now |= (mask(block + 2 * PART) | mask(block + 3 * PART) << PART) << 2 * PART;
        /* A bit stays where a run of 2, 4, 8, 16, then 20 begins. */
        unsigned __int128 begins = (unsigned __int128)now << BLOCK | before;
        begins &= begins >> 1;
        begins &= begins >> 2;
        begins &= begins >> 4;
        begins &= begins >> 8;
        begins &= begins >> (RUN - 16);
        uint64_t low = (uint64_t)begins, high = (uint64_t)(begins >> BLOCK);
        if (low != 0)
            return at - BLOCK + (size_t)__builtin_ctzll(low);
        if (high != 0)
            return at + (size_t)__builtin_ctzll(high);
        before = now;
    }
    return length;
}

#else

static size_t next_run(const uint8_t *data, size_t at, size_t length)
{
    /* A run covers one of every `RUN` bytes, so only these are looked at. */
    for (at += RUN - 1; at < length;) {
        if (!in_run[data[at]]) {
            at += RUN;
            continue;
        }
        size_t start = at, end = at + 1;
        while (start > 0 && in_run[data[start - 1]])
            start--;
        while (end < length && in_run[data[end]])
            end++;
        if (end - start >= RUN)
            return start;
        at = end + RUN;
    }
    return length;
}

#endif

bool is_suspect(const uint8_t *data, size_t length, const Signs *signs)
{
    static bool is_ready = false;
    if (!is_ready) {
        ready();
        is_ready = true;
    }
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(signs->loose); n++) {
        PyObject *needle = PyTuple_GET_ITEM(signs->loose, n);
        if (!PyBytes_CheckExact(needle) ||
            holds(data, length, PyBytes_AS_STRING(needle), (size_t)PyBytes_GET_SIZE(needle)))
            return true;
    }
    size_t seen = 0, seen_max = length / RUNS_SHARE > RUNS_MAX ? length / RUNS_SHARE : RUNS_MAX;
    for (size_t start, end = 0; (start = next_run(data, end, length)) < length;) {
        end = start + RUN;
        while (end < length && in_run[data[end]])
            end++;
        seen += end - start;
        if (seen > seen_max)
            return true;
        if (has_gram(data + (start > BEFORE ? start - BEFORE : 0), data + end - RUN + GRAM, signs))
            return true;
    }
    if (holds(data, length, ARMOUR, sizeof ARMOUR - 1))
        return true;
    return seen > 0 && holds(data, length, HOOK, sizeof HOOK - 1);
}

PyObject *native_suspect(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Signs signs;
    if (count != 2 || !PyBytes_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "suspect(data: bytes, signs)");
        return NULL;
    }
    if (!signs_read(args[1], &signs))
        return NULL;
    return PyBool_FromLong(is_suspect((const uint8_t *)PyBytes_AS_STRING(args[0]),
                                      (size_t)PyBytes_GET_SIZE(args[0]), &signs));
}
