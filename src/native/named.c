/* Containers that a save names instead of writing them: they stand elsewhere. */
#include "save.h"

enum { ANSWER = 3, STORED = 6, SOURCE_MAX = 3 };

int done_if(bool is_done)
{
    return is_done ? 1 : PyErr_Occurred() ? -1 : 0;
}

/* Give a container the next number; it stays open until that is written into it. */
int save_give(Save *save, PyObject *value, const Node *node, bool is_whole)
{
    if (save->count == save->room) {
        Py_ssize_t room = save->room * 2 + 16;
        Given *given = PyMem_Realloc(save->given, (size_t)room * sizeof *given);
        if (given == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        save->given = given;
        save->room = room;
    }
    PyObject *before = SLOT(value, node->node);
    save->given[save->count++] = (Given){Py_NewRef(value), before, save->next++, is_whole};
    SLOT(value, node->node) = Py_NewRef(save->open);
    return 1;
}

/* Whether a container was not written yet since the floor, and is not being written. */
bool save_is_new(Save *save, PyObject *value, const Node *node)
{
    Py_ssize_t number;
    return slot_number(value, node->node, &number) && number < save->floor && number != OPEN;
}

/* Number what is named and all that is in it, a container before what it holds. */
static int number_named(Save *save, PyObject *value, const Node *node, Py_ssize_t *found, int depth)
{
    if (depth > DEPTH_MAX || !save_is_new(save, value, node))
        return 0;
    Py_ssize_t at = save->count, place = 0;
    PyObject *item;
    int done = save_give(save, value, node, false);
    ++*found;
    if (node == &tracked_dict) {
        while (done > 0 && PyDict_Next(value, &place, NULL, &item))
            if (!is_basic(item))
                done = node_of(item) == NULL
                           ? 0
                           : number_named(save, item, node_of(item), found, depth + 1);
    } else {
        for (Py_ssize_t n = 0; done > 0 && n < PyList_GET_SIZE(value); n++) {
            item = PyList_GET_ITEM(value, n);
            if (!is_basic(item))
                done = node_of(item) == NULL
                           ? 0
                           : number_named(save, item, node_of(item), found, depth + 1);
        }
    }
    if (done > 0 && !slot_set_number(value, node->node, save->given[at].number))
        done = -1;
    return done;
}

/* What stands elsewhere: how many containers, in which row and entry of it, with which number. */
typedef struct {
    Py_ssize_t count;
    long long source[SOURCE_MAX];
    int length;
} Stored;

static bool read_numbers(PyObject *tuple, Stored *stored)
{
    if (!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) + stored->length > SOURCE_MAX)
        return false;
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(tuple); n++) {
        PyObject *number = PyTuple_GET_ITEM(tuple, n);
        int is_beyond = 0;
        if (!PyLong_CheckExact(number))
            return false;
        stored->source[stored->length++] = PyLong_AsLongLongAndOverflow(number, &is_beyond);
        if (is_beyond)
            return false;
    }
    return true;
}

/* As `places.stands_at`. */
static bool stands_at(PyObject *source, Stored *stored)
{
    stored->length = 0;
    if (!PyTuple_CheckExact(source) || PyTuple_GET_SIZE(source) != 2)
        return false;
    PyObject *above = PyTuple_GET_ITEM(source, 0), *last = PyTuple_GET_ITEM(source, 1);
    if (above == Py_None)
        return read_numbers(last, stored) && stored->length > 1;
    if (!Py_IS_TYPE(above, place_slots.type) || !PyLong_CheckExact(last))
        return false;
    if (!read_numbers(slot(above, place_slots.at), stored) || stored->length != 2)
        return false;
    stored->source[stored->length++] = PyLong_AsLongLong(last);
    return !PyErr_Occurred();
}

static bool pack_source(Buffer *buffer, const Stored *stored)
{
    bool is_done = pack_array(buffer, 2) && pack_integer(buffer, stored->count) &&
                   pack_array(buffer, (size_t)stored->length);
    for (int n = 0; is_done && n < stored->length; n++)
        is_done = pack_integer(buffer, stored->source[n]);
    return is_done;
}

/* As `lower._stored`: counts, rows as differences, indexes, ordinals. */
static bool pack_sources(Buffer *buffer, const Stored *stored, Py_ssize_t length)
{
    bool is_done = pack_array(buffer, 4);
    for (int part = 0; is_done && part < 4; part++) {
        long long row = 0;
        is_done = pack_array(buffer, (size_t)length);
        for (Py_ssize_t n = 0; is_done && n < length; n++) {
            const Stored *each = stored + n;
            long long ordinal = each->length > 2 ? each->source[2] : -1;
            is_done = pack_integer(buffer, part == 0   ? each->count
                                           : part == 1 ? each->source[0] - row
                                           : part == 2 ? each->source[1]
                                                       : ordinal);
            row = each->source[0];
        }
    }
    return is_done;
}

/* One item for containers that stand elsewhere, one after the other in a list. */
int save_named(Save *save, PyObject *items, Py_ssize_t start, Py_ssize_t stop)
{
    Py_ssize_t length = stop - start;
    Stored *stored = PyMem_Calloc((size_t)length, sizeof *stored);
    int done = stored == NULL ? -1 : 1;
    if (stored == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t n = 0; done > 0 && n < length; n++) {
        PyObject *item = PyList_GET_ITEM(items, start + n);
        const Node *node = node_of(item);
        done = done_if(stands_at(slot(item, node->source), stored + n));
        if (done > 0)
            done = number_named(save, item, node, &stored[n].count, 0);
    }
    if (done > 0) {
        Buffer inner;
        buffer_begin(&inner);
        bool is_one = length == 1;
        done =
            done_if((is_one ? pack_source(&inner, stored) : pack_sources(&inner, stored, length)) &&
                    pack_item(&save->buffer, is_one ? ANSWER : STORED, inner.bytes, inner.length));
        buffer_end(&inner);
    }
    PyMem_Free(stored);
    return done;
}
