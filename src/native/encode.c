/* The codec's bytes of values that msgpack holds as they are: see `codec/values`. */
#include "native.h"

enum { FORM_PLAIN = 0, DEPTH_MAX = 32, MET_MAX = 64 };

typedef struct {
    Buffer buffer;
    PyObject *met[MET_MAX]; /* containers so far: one that stands twice is no plain value */
    int count;
} Plain;

/* False, mostly without an exception: it is not plain, or too large to be sure of it. */
static bool encode(Plain *plain, PyObject *value, int depth)
{
    if (is_basic(value))
        return pack_basic(&plain->buffer, value);
    bool is_mapping = is_dict(value);
    if ((!is_mapping && !is_list(value)) || depth == DEPTH_MAX || plain->count == MET_MAX)
        return false;
    for (int n = 0; n < plain->count; n++)
        if (plain->met[n] == value)
            return false;
    plain->met[plain->count++] = value;
    if (is_mapping) {
        PyObject *key, *item;
        bool is_done = pack_map(&plain->buffer, (size_t)PyDict_GET_SIZE(value));
        for (Py_ssize_t at = 0; is_done && PyDict_Next(value, &at, &key, &item);)
            is_done = PyUnicode_CheckExact(key) && pack_basic(&plain->buffer, key) &&
                      encode(plain, item, depth + 1);
        return is_done;
    }
    Py_ssize_t count = PyList_GET_SIZE(value);
    bool is_done = pack_array(&plain->buffer, (size_t)count);
    for (Py_ssize_t n = 0; is_done && n < count; n++)
        is_done = encode(plain, PyList_GET_ITEM(value, n), depth + 1);
    return is_done;
}

/* encode(value, signs): form and bytes of a plain value in which nothing looks secret. */
PyObject *native_encode(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Signs signs;
    Plain plain;
    uint8_t form = FORM_PLAIN;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "encode(value, signs)");
        return NULL;
    }
    if (!signs_read(args[1], &signs))
        return NULL;
    plain.count = 0;
    buffer_begin(&plain.buffer);
    PyObject *made = NULL;
    Buffer *buffer = &plain.buffer;
    if (buffer_add(buffer, &form, 1) && encode(&plain, args[0], 0)) {
        bool is_ours = !is_suspect(buffer->bytes + 1, buffer->length - 1, &signs);
        made = is_ours
                   ? PyBytes_FromStringAndSize((char *)buffer->bytes, (Py_ssize_t)buffer->length)
                   : Py_NewRef(Py_None);
    } else if (!PyErr_Occurred()) {
        made = Py_NewRef(Py_None);
    }
    buffer_end(buffer);
    return made;
}
