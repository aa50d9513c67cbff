/* The usual deltas of a state, as `capture/lower` writes them; see `capture/wire` for the bytes. */
#include "save.h"

enum { VERSION = 1 };

static int write_items(Save *save, PyObject *items, Py_ssize_t start, Py_ssize_t stop, int depth);

static int write_whole(Save *save, PyObject *value, const Node *node, int depth)
{
    Py_ssize_t at = save->count, place = 0;
    PyObject *key, *item;
    if (depth > DEPTH_MAX)
        return 0;
    int done = save_give(save, value, node, true);
    if (done > 0 && node == &tracked_list)
        done = write_items(save, value, 0, PyList_GET_SIZE(value), depth);
    if (done > 0 && node == &tracked_dict) {
        done = done_if(pack_map(&save->buffer, (size_t)PyDict_GET_SIZE(value)));
        while (done > 0 && PyDict_Next(value, &place, &key, &item)) {
            done = PyUnicode_CheckExact(key) ? done_if(pack_basic(&save->buffer, key)) : 0;
            const Node *below = node_of(item);
            if (done <= 0)
                break;
            if (below == NULL)
                done = is_basic(item) ? done_if(pack_basic(&save->buffer, item)) : 0;
            else if (!save_is_new(save, item, below) || slot(item, below->source) != Py_None)
                done = 0;
            else
                done = write_whole(save, item, below, depth + 1);
        }
    }
    if (done > 0 && !slot_set_number(value, node->node, save->given[at].number))
        done = -1;
    return done;
}

/* Whether an item of a list is to be named; what is known by a number already is not ours. */
static int is_named(Save *save, PyObject *item)
{
    const Node *node = node_of(item);
    if (node == NULL)
        return is_basic(item) ? 0 : -1;
    return save_is_new(save, item, node) ? slot(item, node->source) != Py_None : -1;
}

static int write_items(Save *save, PyObject *items, Py_ssize_t start, Py_ssize_t stop, int depth)
{
    Py_ssize_t written = 0;
    bool was_named = false;
    for (Py_ssize_t n = start; n < stop; n++) {
        int named = is_named(save, PyList_GET_ITEM(items, n));
        if (named < 0)
            return 0;
        written += !(named && was_named);
        was_named = named;
    }
    int done = done_if(pack_array(&save->buffer, (size_t)written));
    for (Py_ssize_t n = start; done > 0 && n < stop;) {
        PyObject *item = PyList_GET_ITEM(items, n);
        const Node *node = node_of(item);
        Py_ssize_t end = n;
        while (end < stop && is_named(save, PyList_GET_ITEM(items, end)) > 0)
            end++;
        if (end > n) {
            done = save_named(save, items, n, end);
            n = end;
        } else {
            if (node == NULL)
                done = done_if(pack_basic(&save->buffer, item));
            else /* One that stands twice is known by now. */
                done = save_is_new(save, item, node) ? write_whole(save, item, node, depth + 1) : 0;
            n++;
        }
    }
    return done;
}

/* The bounds of a list's window, as `Window.cut` gives them. 1: it changed, 0: it did not. */
static int window_of(PyObject *list, Py_ssize_t *trim, Py_ssize_t *lo, Py_ssize_t *hi)
{
    Py_ssize_t noted, saved, length = PyList_GET_SIZE(list);
    PyObject *mark = slot(list, tracked_list.mark);
    if (mark == Py_None)
        return 0;
    if (!Py_IS_TYPE(mark, window_slots.type) || !slot_number(mark, window_slots.length, &noted) ||
        !slot_number(mark, window_slots.length_saved, &saved) ||
        !slot_number(mark, window_slots.lo, lo) || !slot_number(mark, window_slots.hi, hi) ||
        !slot_number(mark, window_slots.trim, trim) || noted != length ||
        slot(mark, window_slots.edits) != Py_None)
        return -1;
    if (*trim == 0 && *lo == length && length == saved)
        return 0;
    if (length - *lo < *hi)
        *hi = length - *lo;
    if (saved - *trim - *lo < *hi)
        *hi = saved - *trim - *lo;
    return 1;
}

static int write_list(Save *save, PyObject *list)
{
    Py_ssize_t trim, lo, hi;
    Buffer *buffer = &save->buffer;
    if (window_of(list, &trim, &lo, &hi) != 1)
        return 0;
    bool is_short = trim == 0 && hi == 0;
    int done = done_if(is_short ? pack_integer(buffer, lo)
                                : pack_array(buffer, 3) && pack_integer(buffer, trim) &&
                                      pack_integer(buffer, lo) && pack_integer(buffer, hi));
    return done > 0 ? write_items(save, list, lo, PyList_GET_SIZE(list) - hi, 0) : done;
}

/* 1: it changed, 0: it did not, -1: not ours. */
static int is_changed(PyObject *node)
{
    Py_ssize_t one, two, three, noted;
    if (Py_IS_TYPE(node, tracked_list.type))
        return window_of(node, &one, &two, &three);
    if (!Py_IS_TYPE(node, tracked_dict.type))
        return -1;
    PyObject *mark = slot(node, tracked_dict.mark);
    if (mark == Py_None)
        return 0;
    if (!Py_IS_TYPE(mark, changes_slots.type) || !slot_number(mark, changes_slots.length, &noted) ||
        noted != PyDict_GET_SIZE(node))
        return -1;
    PyObject *gone = slot(mark, changes_slots.gone), *put = slot(mark, changes_slots.put);
    if (!PyDict_CheckExact(gone) || !PyDict_CheckExact(put))
        return -1;
    return PyDict_GET_SIZE(gone) > 0 || PyDict_GET_SIZE(put) > 0;
}

static int write_dict(Save *save, PyObject *mapping)
{
    PyObject *mark = slot(mapping, tracked_dict.mark), *key;
    PyObject *gone = slot(mark, changes_slots.gone), *put = slot(mark, changes_slots.put);
    Buffer *buffer = &save->buffer;
    Py_ssize_t at = 0;
    int done = done_if(pack_array(buffer, (size_t)PyDict_GET_SIZE(gone)));
    while (done > 0 && PyDict_Next(gone, &at, &key, NULL))
        done = PyUnicode_CheckExact(key) ? done_if(pack_basic(buffer, key)) : 0;
    if (done > 0)
        done = done_if(pack_map(buffer, (size_t)PyDict_GET_SIZE(put)));
    for (at = 0; done > 0 && PyDict_Next(put, &at, &key, NULL);) {
        PyObject *value = PyUnicode_CheckExact(key) ? PyDict_GetItemWithError(mapping, key) : NULL;
        const Node *node = value == NULL ? NULL : node_of(value);
        done = value == NULL ? 0 : done_if(pack_basic(buffer, key));
        if (done > 0 && node == NULL)
            done = is_basic(value) ? done_if(pack_basic(buffer, value)) : 0;
        else if (done > 0)
            done = save_is_new(save, value, node) && slot(value, node->source) == Py_None
                       ? write_whole(save, value, node, 0)
                       : 0;
    }
    return done;
}

static int write_document(Save *save, PyObject *dirty, bool *is_empty)
{
    Py_ssize_t changed = 0, length = PyList_GET_SIZE(dirty), first = save->next - save->floor;
    for (Py_ssize_t n = 0; n < length; n++) {
        int is_one = is_changed(PyList_GET_ITEM(dirty, n));
        if (is_one < 0)
            return 0;
        changed += is_one;
    }
    *is_empty = changed == 0;
    int done = done_if(pack_array(&save->buffer, 2 + 3 * (size_t)changed) &&
                       pack_integer(&save->buffer, VERSION) && pack_integer(&save->buffer, first));
    for (Py_ssize_t n = 0; done > 0 && n < length; n++) {
        PyObject *container = PyList_GET_ITEM(dirty, n);
        const Node *node = node_of(container);
        Py_ssize_t number;
        if (is_changed(container) == 0)
            continue;
        done = slot_number(container, node->node, &number) && number >= save->floor;
        if (done > 0)
            done = done_if(pack_integer(&save->buffer, number - save->floor));
        if (done > 0)
            done =
                node == &tracked_list ? write_list(save, container) : write_dict(save, container);
    }
    return done;
}

/* Data, the next number, and the containers that were written with their numbers. */
static PyObject *told(Save *save, bool is_empty)
{
    PyObject *whole = PyList_New(0);
    for (Py_ssize_t n = 0; n < save->count && whole != NULL; n++) {
        Given *given = save->given + n;
        PyObject *pair = given->is_whole ? Py_BuildValue("On", given->node, given->number) : NULL;
        if (given->is_whole && (pair == NULL || PyList_Append(whole, pair) < 0))
            Py_CLEAR(whole);
        Py_XDECREF(pair);
    }
    if (whole == NULL)
        return NULL;
    if (is_empty)
        return Py_BuildValue("OnN", Py_None, save->next, whole);
    return Py_BuildValue("y#nN", (char *)save->buffer.bytes, (Py_ssize_t)save->buffer.length,
                         save->next, whole);
}

/* Take back the numbers where nothing came of it; let go of what was held. */
static void put_back(Save *save, bool is_done)
{
    for (Py_ssize_t n = save->count; n-- > 0;) {
        Given *given = save->given + n;
        Py_ssize_t offset = node_of(given->node)->node;
        if (is_done) {
            Py_DECREF(given->before);
        } else {
            Py_DECREF(SLOT(given->node, offset));
            SLOT(given->node, offset) = given->before;
        }
        Py_DECREF(given->node);
    }
    PyMem_Free(save->given);
    buffer_end(&save->buffer);
    Py_DECREF(save->open);
}

/* delta(dirty, floor, next, bytes_max, signs): what changed in a state whose lock is held, if it
 * has fewer bytes than that and nothing in it looks secret. */
PyObject *native_delta(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Signs signs;
    if (count != 5 || !PyList_CheckExact(args[0]) || !PyLong_Check(args[1]) ||
        !PyLong_Check(args[2]) || !PyLong_Check(args[3])) {
        PyErr_SetString(PyExc_TypeError, "delta(dirty: list, floor, next, bytes_max, signs)");
        return NULL;
    }
    Save save;
    save.floor = PyLong_AsSsize_t(args[1]);
    save.next = PyLong_AsSsize_t(args[2]);
    save.given = NULL;
    save.count = save.room = 0;
    Py_ssize_t bytes_max = PyLong_AsSsize_t(args[3]);
    bool is_empty = true;
    PyObject *found = NULL;
    if (PyErr_Occurred() || !signs_read(args[4], &signs))
        return NULL;
    if ((save.open = PyLong_FromLong(OPEN)) == NULL)
        return NULL;
    buffer_begin(&save.buffer);
    int done = write_document(&save, args[0], &is_empty);
    Buffer *buffer = &save.buffer;
    if (done > 0 &&
        (buffer->length >= (size_t)bytes_max || is_suspect(buffer->bytes, buffer->length, &signs)))
        done = 0;
    if (done > 0)
        found = told(&save, is_empty);
    else if (done == 0)
        found = Py_NewRef(Py_None);
    put_back(&save, done > 0 && found != NULL);
    return found;
}
