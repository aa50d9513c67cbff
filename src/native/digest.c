/* Digests of flat dicts and of groups of items: the usual cases of `capture/digest`. */
#include "native.h"

enum { GROUP = 32, DIGEST_CODE = 0 };

/* The digest of a dict of a few basic values under names; 1: done, 0: not ours, -1: exception. */
static int hash_flat(PyObject *mapping, const Signs *signs, uint8_t digest[SHA256_BYTES])
{
    PyObject *names[GROUP], *values[GROUP], *name, *value;
    Py_ssize_t at = 0, count = PyDict_GET_SIZE(mapping);
    if (count > GROUP)
        return 0;
    for (Py_ssize_t n = 0; n < count && PyDict_Next(mapping, &at, &name, &value); n++) {
        if (!PyUnicode_CheckExact(name) || !is_basic(value))
            return 0;
        Py_ssize_t place = n;
        for (; place > 0 && PyUnicode_Compare(name, names[place - 1]) < 0; place--) {
            names[place] = names[place - 1];
            values[place] = values[place - 1];
        }
        names[place] = name;
        values[place] = value;
    }
    Buffer buffer;
    buffer_begin(&buffer);
    bool is_packed = pack_array(&buffer, 2 * (size_t)count);
    for (Py_ssize_t n = 0; n < count && is_packed; n++)
        is_packed = pack_basic(&buffer, names[n]);
    for (Py_ssize_t n = 0; n < count && is_packed; n++)
        is_packed = pack_basic(&buffer, values[n]);
    bool is_ours = is_packed && !is_suspect(buffer.bytes, buffer.length, signs);
    if (is_ours) {
        Sha256 hash;
        sha256_begin(&hash);
        sha256_add(&hash, "d", 1);
        sha256_add(&hash, buffer.bytes, buffer.length);
        sha256_end(&hash, digest);
    }
    buffer_end(&buffer);
    return is_ours ? 1 : PyErr_Occurred() ? -1 : 0;
}

static PyObject *as_bytes(const uint8_t digest[SHA256_BYTES])
{
    return PyBytes_FromStringAndSize((const char *)digest, SHA256_BYTES);
}

/* hash_flat(mapping, signs): the digest of a dict. */
PyObject *native_hash_flat(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Signs signs;
    uint8_t digest[SHA256_BYTES];
    if (count != 2 || !is_dict(args[0])) {
        PyErr_SetString(PyExc_TypeError, "hash_flat(mapping: dict, signs)");
        return NULL;
    }
    if (!signs_read(args[1], &signs))
        return NULL;
    int done = hash_flat(args[0], &signs, digest);
    return done < 0 ? NULL : done == 0 ? Py_NewRef(Py_None) : as_bytes(digest);
}

/* The digest that a tracked container knows, or, of a flat dict whose lock is held, learns now. */
static int known_digest(PyObject *node, const Node *slots, PyObject *tracker, const Signs *signs,
                        const char **digest)
{
    PyObject *known = slot(node, slots->hash);
    if (known == Py_None && slots == &tracked_dict && slot(node, slots->tracker) == tracker) {
        uint8_t found[SHA256_BYTES];
        int done = hash_flat(node, signs, found);
        if (done <= 0)
            return done;
        PyObject *made = as_bytes(found);
        if (made == NULL)
            return -1;
        slot_set(node, slots->hash, made);
        Py_DECREF(made);
        known = made;
    }
    if (!PyBytes_CheckExact(known) || PyBytes_GET_SIZE(known) != SHA256_BYTES)
        return 0;
    *digest = PyBytes_AS_STRING(known);
    return 1;
}

/* Pack what stands for each item; 1: done, 0: not ours, -1: exception. */
static int pack_items(Buffer *buffer, PyObject *items, Py_ssize_t start, Py_ssize_t stop,
                      PyObject *tracker, const Signs *signs)
{
    bool is_any_basic = false;
    if (!pack_array(buffer, (size_t)(stop - start)))
        return -1;
    for (Py_ssize_t n = start; n < stop; n++) {
        PyObject *item = PyList_GET_ITEM(items, n);
        if (is_basic(item)) {
            is_any_basic = true;
            if (!pack_basic(buffer, item))
                return PyErr_Occurred() ? -1 : 0;
        } else if (node_of(item) != NULL) {
            const char *digest;
            int done = known_digest(item, node_of(item), tracker, signs, &digest);
            if (done <= 0)
                return done;
            if (!pack_item(buffer, DIGEST_CODE, digest, SHA256_BYTES))
                return -1;
        } else {
            return 0;
        }
    }
    return !is_any_basic || !is_suspect(buffer->bytes, buffer->length, signs);
}

/* hash_items(items, start, stop, kind, tracker, signs): of a tracked list whose lock is held, the
 * digest of `kind` and some of its items. */
PyObject *native_hash_items(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Signs signs;
    if (count != 6 || !PyList_Check(args[0]) || !PyLong_Check(args[1]) || !PyLong_Check(args[2]) ||
        !PyBytes_CheckExact(args[3]) || tracked_dict.type == NULL) {
        PyErr_SetString(
            PyExc_TypeError,
            "hash_items(items: list, start: int, stop: int, kind: bytes, tracker, signs)");
        return NULL;
    }
    Py_ssize_t start = PyLong_AsSsize_t(args[1]), stop = PyLong_AsSsize_t(args[2]);
    if (PyErr_Occurred() || !signs_read(args[5], &signs))
        return NULL;
    if (stop > PyList_GET_SIZE(args[0]))
        stop = PyList_GET_SIZE(args[0]);
    if (start < 0 || start > stop)
        return Py_NewRef(Py_None);
    Buffer buffer;
    buffer_begin(&buffer);
    int done = pack_items(&buffer, args[0], start, stop, args[4], &signs);
    uint8_t digest[SHA256_BYTES];
    if (done > 0) {
        Sha256 hash;
        sha256_begin(&hash);
        sha256_add(&hash, PyBytes_AS_STRING(args[3]), (size_t)PyBytes_GET_SIZE(args[3]));
        sha256_add(&hash, buffer.bytes, buffer.length);
        sha256_end(&hash, digest);
    }
    buffer_end(&buffer);
    return done < 0 ? NULL : done == 0 ? Py_NewRef(Py_None) : as_bytes(digest);
}

enum { NEW_MAX = 4 };

/* Hash all groups of a list and its length; those before `known` are as they were the last time. */
static PyObject *hash_root(PyObject *cache, PyObject *groups, Py_ssize_t known, Py_ssize_t length)
{
    Py_ssize_t before = PyByteArray_GET_SIZE(groups) / SHA256_BYTES - 1, prefixed;
    if (!slot_number(cache, list_cache.prefixed, &prefixed))
        return Py_NewRef(Py_None);
    Sha256 *prefix = hash_of(slot(cache, list_cache.prefix));
    if (prefix == NULL)
        return Py_NewRef(Py_None);
    if (prefixed < 0 || prefixed > before || prefixed > known) {
        PyObject *made = new_hash();
        if (made == NULL)
            return NULL;
        slot_set(cache, list_cache.prefix, made);
        Py_DECREF(made);
        prefix = hash_of(made);
        sha256_add(prefix, "L", 1);
        prefixed = 0;
    }
    /* Nothing is known of the prefix while it changes. */
    if (prefixed < before && !slot_set_number(cache, list_cache.prefixed, -1))
        return NULL;
    const char *bytes = PyByteArray_AS_STRING(groups);
    sha256_add(prefix, bytes + prefixed * SHA256_BYTES, (size_t)(before - prefixed) * SHA256_BYTES);
    if (!slot_set_number(cache, list_cache.prefixed, before))
        return NULL;
    Sha256 hash = *prefix;
    uint8_t digest[SHA256_BYTES];
    char number[24];
    int digits = snprintf(number, sizeof number, "%zd", length);
    sha256_add(&hash, bytes + before * SHA256_BYTES, SHA256_BYTES);
    sha256_add(&hash, number, (size_t)digits);
    sha256_end(&hash, digest);
    return as_bytes(digest);
}

/* hash_list(items, cache, tracker, signs): the digest of a long tracked list whose lock is held, of
 * which at most the last groups are not known. */
PyObject *native_hash_list(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Signs signs;
    if (count != 4 || !Py_IS_TYPE(args[0], tracked_list.type) ||
        !Py_IS_TYPE(args[1], list_cache.type)) {
        PyErr_SetString(PyExc_TypeError, "hash_list(items, cache, tracker, signs)");
        return NULL;
    }
    if (!signs_read(args[3], &signs))
        return NULL;
    PyObject *cache = args[1], *groups = slot(cache, list_cache.groups);
    PyObject *unknown = slot(cache, list_cache.unknown), *stale = slot(cache, list_cache.stale);
    Py_ssize_t length = PyList_GET_SIZE(args[0]), all = (length + GROUP - 1) / GROUP;
    if (length <= GROUP || !PyByteArray_CheckExact(groups) || !PySet_CheckExact(unknown) ||
        !PySet_CheckExact(stale) || PySet_GET_SIZE(unknown) > 0 || PySet_GET_SIZE(stale) > 0)
        return Py_NewRef(Py_None);
    Py_ssize_t known = PyByteArray_GET_SIZE(groups) / SHA256_BYTES;
    known = known < all ? known : all;
    uint8_t digests[NEW_MAX][SHA256_BYTES];
    if (all - known > NEW_MAX)
        return Py_NewRef(Py_None);
    for (Py_ssize_t group = known; group < all; group++) {
        Py_ssize_t start = group * GROUP, stop = start + GROUP < length ? start + GROUP : length;
        Buffer buffer;
        buffer_begin(&buffer);
        int done = pack_items(&buffer, args[0], start, stop, args[2], &signs);
        if (done > 0) {
            Sha256 hash;
            sha256_begin(&hash);
            sha256_add(&hash, buffer.bytes, buffer.length);
            sha256_end(&hash, digests[group - known]);
        }
        buffer_end(&buffer);
        if (done <= 0)
            return done < 0 ? NULL : Py_NewRef(Py_None);
    }
    if (PyByteArray_Resize(groups, all * SHA256_BYTES) < 0)
        return NULL;
    memcpy(PyByteArray_AS_STRING(groups) + known * SHA256_BYTES, digests,
           (size_t)(all - known) * SHA256_BYTES);
    PyObject *root = hash_root(cache, groups, known, length);
    if (root != NULL && root != Py_None)
        slot_set(cache, list_cache.root, root);
    return root;
}
