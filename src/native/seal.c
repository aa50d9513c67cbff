/* A row of an open store: its frame and its hash, as `store/chain` and `store/codec/frame` make
 * them. */
#include "native.h"

enum { FRAME_VERSION = 1, FRAME_HEAD = 8, COMPRESS_BYTES_MIN = 4096 };

/* seal_row(store_id, id, before, payload): hash and body of the row with a payload that is not to
 * be compressed, after the row with hash `before`. */
PyObject *native_seal_row(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 4 || !PyBytes_CheckExact(args[0]) || !PyLong_Check(args[1]) ||
        !PyBytes_CheckExact(args[2]) || !PyBytes_CheckExact(args[3])) {
        PyErr_SetString(PyExc_TypeError, "seal_row(store_id, id, before, payload)");
        return NULL;
    }
    uint64_t id = PyLong_AsUnsignedLongLong(args[1]);
    if (PyErr_Occurred())
        return NULL;
    Py_ssize_t plain = PyBytes_GET_SIZE(args[3]);
    if (plain >= COMPRESS_BYTES_MIN)
        return Py_NewRef(Py_None);
    PyObject *body = PyBytes_FromStringAndSize(NULL, FRAME_HEAD + plain);
    if (body == NULL)
        return NULL;
    uint8_t *frame = (uint8_t *)PyBytes_AS_STRING(body), place[8], digest[SHA256_BYTES];
    uint8_t *end = put(frame, FRAME_VERSION, 1);
    end = put(end, 0, 3); /* no flags, no key */
    end = put(end, (uint64_t)plain, 4);
    memcpy(end, PyBytes_AS_STRING(args[3]), (size_t)plain);
    Sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, "j", 1);
    sha256_add(&hash, PyBytes_AS_STRING(args[0]), (size_t)PyBytes_GET_SIZE(args[0]));
    put(place, id, 8);
    sha256_add(&hash, place, sizeof place);
    sha256_add(&hash, PyBytes_AS_STRING(args[2]), (size_t)PyBytes_GET_SIZE(args[2]));
    sha256_add(&hash, frame, (size_t)(FRAME_HEAD + plain));
    sha256_end(&hash, digest);
    PyObject *mac = PyBytes_FromStringAndSize((const char *)digest, SHA256_BYTES);
    PyObject *made = mac == NULL ? NULL : PyTuple_Pack(2, mac, body);
    Py_XDECREF(mac);
    Py_DECREF(body);
    return made;
}
