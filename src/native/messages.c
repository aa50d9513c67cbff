/* The messages that a base names: `Lowering._messages`, of which it asks for thousands. */
#include "save.h"

enum { SMALL_ITEMS = 8, SMALL_TEXT = 32 };

/* Whether a flat dict is not worth another read. */
static bool is_small(PyObject *mapping)
{
    PyObject *value;
    if (PyDict_GET_SIZE(mapping) > SMALL_ITEMS)
        return false;
    for (Py_ssize_t at = 0; PyDict_Next(mapping, &at, NULL, &value);)
        if ((PyUnicode_CheckExact(value) && PyUnicode_GET_LENGTH(value) > SMALL_TEXT) ||
            (PyBytes_CheckExact(value) && PyBytes_GET_SIZE(value) > SMALL_TEXT))
            return false;
    return true;
}

/* Where a container stands by itself, as a tuple; NULL, mostly without an exception: nowhere. */
static PyObject *token_of(PyObject *source)
{
    if (!PyTuple_CheckExact(source) || PyTuple_GET_SIZE(source) != 2)
        return NULL;
    PyObject *above = PyTuple_GET_ITEM(source, 0), *last = PyTuple_GET_ITEM(source, 1);
    if (above == Py_None)
        return PyTuple_CheckExact(last) && PyTuple_GET_SIZE(last) > 1 ? Py_NewRef(last) : NULL;
    PyObject *at = Py_IS_TYPE(above, place_slots.type) ? slot(above, place_slots.at) : Py_None;
    if (!PyTuple_CheckExact(at) || PyTuple_GET_SIZE(at) != 2)
        return NULL;
    return PyTuple_Pack(3, PyTuple_GET_ITEM(at, 0), PyTuple_GET_ITEM(at, 1), last);
}

/* Note one message under the next number. */
static bool note(PyObject *item, PyObject *token, Py_ssize_t number, PyObject *found,
                 PyObject *given)
{
    PyObject *part = Py_BuildValue("iO", 1, token);
    PyObject *pair = PyTuple_Pack(2, item, slot(item, tracked_dict.node));
    bool is_noted = part != NULL && pair != NULL && PyList_Append(given, pair) == 0 &&
                    PyList_Append(found, part) == 0 &&
                    slot_set_number(item, tracked_dict.node, number);
    Py_XDECREF(part);
    Py_XDECREF(pair);
    return is_noted;
}

/* messages(items, floor, next, given): how the flat dicts that a list begins with are named, up to
 * the first that is not stored; each is numbered, and told in `given` with its number before. */
PyObject *native_messages(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 4 || !PyList_Check(args[0]) || !PyLong_Check(args[1]) || !PyLong_Check(args[2]) ||
        !PyList_CheckExact(args[3]) || tracked_dict.type == NULL) {
        PyErr_SetString(PyExc_TypeError, "messages(items: list, floor, next, given: list)");
        return NULL;
    }
    Py_ssize_t floor = PyLong_AsSsize_t(args[1]), next = PyLong_AsSsize_t(args[2]), before;
    PyObject *found = PyErr_Occurred() ? NULL : PyList_New(0);
    if (found == NULL)
        return NULL;
    for (Py_ssize_t n = 0; n < PyList_GET_SIZE(args[0]); n++) {
        PyObject *item = PyList_GET_ITEM(args[0], n);
        if (!Py_IS_TYPE(item, tracked_dict.type) || !slot_number(item, tracked_dict.node, &before))
            break;
        if (before >= floor || before == OPEN || !is_flat(item) || is_small(item))
            break;
        PyObject *token = token_of(slot(item, tracked_dict.source));
        bool is_noted = token != NULL && note(item, token, next++, found, args[3]);
        Py_XDECREF(token);
        if (!is_noted)
            break;
    }
    if (PyErr_Occurred())
        Py_CLEAR(found);
    return found;
}
