/* `holdfast._native`: what Python sees. */
#include "native.h"

typedef struct {
    PyObject_HEAD Sha256 hash;
} HashObject;

static int hash_take(HashObject *self, PyObject *data)
{
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
        return -1;
    sha256_add(&self->hash, view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return 0;
}

static PyObject *hash_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    PyObject *data = NULL;
    if ((named != NULL && PyDict_GET_SIZE(named) > 0) ||
        !PyArg_ParseTuple(args, "|O:sha256", &data))
        return NULL;
    HashObject *self = (HashObject *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    sha256_begin(&self->hash);
    if (data != NULL && hash_take(self, data) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static PyObject *hash_update(HashObject *self, PyObject *data)
{
    if (hash_take(self, data) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *hash_copy(HashObject *self, PyObject *Py_UNUSED(none))
{
    PyTypeObject *type = Py_TYPE(self);
    HashObject *made = (HashObject *)type->tp_alloc(type, 0);
    if (made != NULL)
        made->hash = self->hash;
    return (PyObject *)made;
}

static PyObject *hash_digest(HashObject *self, PyObject *Py_UNUSED(none))
{
    uint8_t digest[SHA256_BYTES];
    Sha256 hash = self->hash;
    sha256_end(&hash, digest);
    return PyBytes_FromStringAndSize((const char *)digest, SHA256_BYTES);
}

static PyMethodDef HASH_METHODS[] = {
    {"update", (PyCFunction)hash_update, METH_O, "Hash more bytes."},
    {"copy", (PyCFunction)hash_copy, METH_NOARGS, "The same hash, to go on from here."},
    {"digest", (PyCFunction)hash_digest, METH_NOARGS, "The 32 bytes of what was hashed."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot HASH_SLOTS[] = {
    {Py_tp_doc, "SHA-256, as `hashlib.sha256`."},
    {Py_tp_new, hash_new},
    {Py_tp_methods, HASH_METHODS},
    {0, NULL},
};

static PyType_Spec HASH_SPEC = {
    .name = "holdfast._native.sha256",
    .basicsize = sizeof(HashObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = HASH_SLOTS,
};

static PyTypeObject *hash_type;

Sha256 *hash_of(PyObject *object)
{
    return Py_IS_TYPE(object, hash_type) ? &((HashObject *)object)->hash : NULL;
}

PyObject *new_hash(void)
{
    return PyObject_CallNoArgs((PyObject *)hash_type);
}

#define FUNCTION(name, does)                                                                       \
    {#name, (PyCFunction)(void (*)(void))native_##name, METH_FASTCALL, does}

static PyMethodDef FUNCTIONS[] = {
    FUNCTION(bind, "Say which classes and objects of Python the functions here work with."),
    FUNCTION(suspect, "Whether a closer look for secrets at bytes is due."),
    FUNCTION(hash_flat, "The digest of a flat dict, or None."),
    FUNCTION(hash_items, "The digest of some items of a tracked list, or None."),
    FUNCTION(hash_list, "The digest of a long tracked list, or None."),
    FUNCTION(brief, "A short form of a usual value, or None."),
    FUNCTION(encode, "The codec's bytes of a plain value, or None."),
    FUNCTION(track, "A loose tracked copy of a flat dict, or None."),
    FUNCTION(append, "Append a usual item to a tracked list; whether that was done."),
    FUNCTION(set_items, "Put usual items into a tracked dict; whether that was done."),
    FUNCTION(delta, "What changed in a state in usual ways, or None."),
    FUNCTION(is_same, "Whether two dicts or lists hold the very same objects."),
    FUNCTION(cuts, "Which values can be cut out of a row, or None."),
    FUNCTION(seal_row, "Hash and body of a small row of an open store, or None."),
    FUNCTION(direct, "What `add_row` takes to write past the page cache by looking, or None."),
    FUNCTION(add_row, "Add a row to the tail of a store and note it; what became of that."),
    FUNCTION(messages, "How a base names the messages that a list begins with."),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "holdfast._native",
    .m_doc = "What is done in C; each function has a twin in Python.",
    .m_size = -1,
    .m_methods = FUNCTIONS,
};

PyMODINIT_FUNC PyInit__native(void)
{
    sha256_ready();
    crc32_ready();
    PyObject *module = PyModule_Create(&MODULE);
    PyObject *type = module == NULL ? NULL : PyType_FromSpec(&HASH_SPEC);
    if (type == NULL || PyModule_AddObjectRef(module, "sha256", type) < 0)
        Py_CLEAR(module);
    hash_type = (PyTypeObject *)type; /* For good: a module's own. */
    return module;
}
