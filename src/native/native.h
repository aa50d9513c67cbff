/* What the files of this folder share. See `holdfast/native.py` for what they are for. */
#ifndef HOLDFAST_NATIVE_H
#define HOLDFAST_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* sha256.c: the hash, as in FIPS 180-4. */
#define SHA256_BYTES 32

typedef struct {
    uint32_t state[8];
    uint64_t length;
    uint8_t block[64];
} Sha256;

void sha256_ready(void);
void sha256_begin(Sha256 *hash);
void sha256_add(Sha256 *hash, const void *data, size_t length);
void sha256_end(Sha256 *hash, uint8_t digest[SHA256_BYTES]);

/* module.c: the hash that an object of Python holds; NULL of another object. And a new one. */
Sha256 *hash_of(PyObject *object);
PyObject *new_hash(void);

/* tail.c: rows in the tail of a store, and their checksums. */
void crc32_ready(void);

/* wait.c: look again and again until it is there, for so long at most; false if it never was. Tells
 * too whether others had the processor in between. */
bool look_for(bool (*is_there)(void *), void *what, int64_t ns_max, bool *was_away);

/* direct.c: writes past the page cache, waited for by looking. */
typedef struct Direct Direct;

/* What `direct` gave, ready for a row; NULL of anything else. Python's own lock is held. */
Direct *direct_of(PyObject *given);

/* Have the disk keep whole blocks of memory that is aligned as they are. 1: it has kept them; 0:
 * they are to be written another way, for now or ever; -1: `errno` says why not. */
int direct_keep(Direct *direct, const uint8_t *data, size_t length, long long at);

/* Others have work for the processor: leave some rows to who sleeps while the disk works. */
void direct_yield(Direct *direct);

/* pack.c: msgpack, byte for byte as msgspec writes it. */
typedef struct {
    uint8_t *bytes;
    size_t length;
    size_t room;
    uint8_t first[2048]; /* most of what is packed fits here */
} Buffer;

void buffer_begin(Buffer *buffer);
void buffer_end(Buffer *buffer);
bool buffer_add(Buffer *buffer, const void *data, size_t length);

/* Write a number big-endian; returns what is behind it. */
static inline uint8_t *put(uint8_t *at, uint64_t number, int bytes)
{
    for (int n = bytes - 1; n >= 0; n--)
        *at++ = (uint8_t)(number >> 8 * n);
    return at;
}

bool pack_array(Buffer *buffer, size_t count);
bool pack_map(Buffer *buffer, size_t count);
bool pack_integer(Buffer *buffer, long long value);
bool pack_item(Buffer *buffer, int code, const void *data, size_t length);
bool is_basic(PyObject *value);
bool pack_basic(Buffer *buffer, PyObject *value);

/* look.c: whether bytes may hold a secret. */
typedef struct {
    const uint8_t *grams;
    size_t grams_length;
    PyObject *loose;
} Signs;

bool signs_read(PyObject *given, Signs *signs);
bool is_suspect(const uint8_t *data, size_t length, const Signs *signs);

/* tracked.c: classes of Python, and where their slots lie. */
typedef struct {
    PyTypeObject *type; /* NULL until Python has said which class it is */
    Py_ssize_t tracker, node, mark, hash, source, up, watch;
} Node;

typedef struct {
    PyTypeObject *type;
    Py_ssize_t lock, floor, dirty;
} Tracker;

typedef struct {
    PyTypeObject *type;
    Py_ssize_t length, length_saved, lo, hi, trim, edits;
} Window;

typedef struct {
    PyTypeObject *type;
    Py_ssize_t gone, put, length;
} Changes;

typedef struct {
    PyTypeObject *type;
    Py_ssize_t root, groups, touched, unknown, stale, prefix, prefixed;
} Cache;

typedef struct {
    PyTypeObject *type;
    Py_ssize_t at;
} Place;

extern Node tracked_dict, tracked_list;
extern Tracker tracker_slots;
extern Window window_slots;
extern Changes changes_slots;
extern Cache list_cache, dict_cache;
extern Place place_slots;

/* Objects of Python that changes need. */
typedef struct {
    PyObject *inside, *loose, *links, *stale, *forget_source;
    PyObject *acquire, *release; /* names of methods: calling them by these takes no memory */
} Bound;

extern Bound bound;

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

/* What stands in a slot; None where nothing does. Borrowed. */
static inline PyObject *slot(PyObject *object, Py_ssize_t offset)
{
    PyObject *found = SLOT(object, offset);
    return found == NULL ? Py_None : found;
}

static inline void slot_set(PyObject *object, Py_ssize_t offset, PyObject *value)
{
    PyObject *before = SLOT(object, offset);
    SLOT(object, offset) = Py_NewRef(value);
    Py_XDECREF(before);
}

/* A small whole number that stands in a slot; false, without an exception, where none does. */
static inline bool slot_number(PyObject *object, Py_ssize_t offset, Py_ssize_t *number)
{
    PyObject *found = SLOT(object, offset);
    if (found == NULL || !PyLong_CheckExact(found))
        return false;
    *number = PyLong_AsSsize_t(found);
    if (*number == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    return true;
}

bool slot_set_number(PyObject *object, Py_ssize_t offset, Py_ssize_t number);

/* The slots of a tracked container; NULL of anything else. */
static inline const Node *node_of(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    return type == tracked_dict.type   ? &tracked_dict
           : type == tracked_list.type ? &tracked_list
                                       : NULL;
}

static inline bool is_dict(PyObject *value)
{
    return PyDict_CheckExact(value) || Py_IS_TYPE(value, tracked_dict.type);
}

static inline bool is_list(PyObject *value)
{
    return PyList_CheckExact(value) || Py_IS_TYPE(value, tracked_list.type);
}

/* Whether there is nothing in a dict or list but basic values. */
bool is_flat(PyObject *container);

/* What Python calls; each gives None where a case is the business of its twin in Python. */
#define CALLED(name)                                                                               \
    PyObject *native_##name(PyObject *module, PyObject *const *args, Py_ssize_t count)
CALLED(bind);
CALLED(suspect);
CALLED(hash_flat);
CALLED(hash_items);
CALLED(hash_list);
CALLED(brief);
CALLED(encode);
CALLED(track);
CALLED(append);
CALLED(set_items);
CALLED(delta);
CALLED(messages);
CALLED(cuts);
CALLED(is_same);
CALLED(seal_row);
CALLED(direct);
CALLED(add_row);

#endif
