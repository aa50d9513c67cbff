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
    /* A run covers one of every `RUN` bytes, so only these are looked at. */
    for (size_t at = RUN - 1; at < length;) {
        if (!in_run[data[at]]) {
            at += RUN;
            continue;
        }
        size_t start = at, end = at + 1;
        while (start > 0 && in_run[data[start - 1]])
            start--;
        while (end < length && in_run[data[end]])
            end++;
        if (end - start >= RUN) {
            seen += end - start;
            if (seen > seen_max)
                return true;
            if (has_gram(data + (start > BEFORE ? start - BEFORE : 0), data + end - RUN + GRAM,
                         signs))
                return true;
        }
        at = end + RUN;
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
