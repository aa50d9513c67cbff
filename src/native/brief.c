/* Short forms of the usual values, as `engine/brief` gives them. */
#include "native.h"

static const char ELLIPSIS[] = "\xe2\x80\xa6";

enum { TEXT_CHARS_MAX = 60, ITEMS_MAX = 3, LOOKED_AT_MAX = 4096, DEPTH = 2 };

static PyObject *brief(PyObject *value, int depth, const Signs *signs);

/* Whether nothing in the first so many characters of a text would have to be left out. */
static bool is_clear(PyObject *text, Py_ssize_t chars, const Signs *signs)
{
    Py_ssize_t length;
    if (PyUnicode_IS_ASCII(text)) {
        length = PyUnicode_GET_LENGTH(text) < chars ? PyUnicode_GET_LENGTH(text) : chars;
        return !is_suspect(PyUnicode_DATA(text), (size_t)length, signs);
    }
    PyObject *start = PyUnicode_Substring(text, 0, chars);
    const char *data = start == NULL ? NULL : PyUnicode_AsUTF8AndSize(start, &length);
    bool is_fine = data != NULL && !is_suspect((const uint8_t *)data, (size_t)length, signs);
    if (data == NULL) /* Half a character. */
        PyErr_Clear();
    Py_XDECREF(start);
    return is_fine;
}

static PyObject *brief_text(PyObject *text, const Signs *signs)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    if (length <= TEXT_CHARS_MAX)
        return PyObject_Repr(text);
    if (!is_clear(text, LOOKED_AT_MAX, signs))
        return NULL;
    PyObject *start = PyUnicode_Substring(text, 0, TEXT_CHARS_MAX - 10);
    PyObject *made =
        start == NULL ? NULL : PyUnicode_FromFormat("%R%s (%zd long)", start, ELLIPSIS, length);
    Py_XDECREF(start);
    return made;
}

static PyObject *brief_number(PyObject *number)
{
    PyObject *whole = PyObject_Repr(number); /* Of too many digits it is refused. */
    PyObject *start = whole == NULL ? NULL : PyUnicode_Substring(whole, 0, TEXT_CHARS_MAX);
    Py_XDECREF(whole);
    return start;
}

/* What is said of each part, with commas between, in brackets. */
static PyObject *listed(PyObject *const *parts, Py_ssize_t count, const char *brackets)
{
    PyObject *made = PyUnicode_FromFormat("%c", brackets[0]);
    for (Py_ssize_t n = 0; n < count && made != NULL; n++) {
        PyObject *longer = PyUnicode_FromFormat("%U%s%U", made, n == 0 ? "" : ", ", parts[n]);
        Py_SETREF(made, longer);
    }
    if (made != NULL)
        Py_SETREF(made, PyUnicode_FromFormat("%U%c", made, brackets[1]));
    return made;
}

static PyObject *brief_dict(PyObject *mapping, int depth, const Signs *signs)
{
    Py_ssize_t count = PyDict_GET_SIZE(mapping), at = 0, made = 0;
    PyObject *parts[ITEMS_MAX] = {NULL}, *key, *value, *whole = NULL;
    if (depth == 0 || count > ITEMS_MAX)
        return PyUnicode_FromFormat("{%zd keys}", count);
    for (; made < count && PyDict_Next(mapping, &at, &key, &value); made++) {
        if (!PyUnicode_CheckExact(key) || PyUnicode_GET_LENGTH(key) > TEXT_CHARS_MAX)
            break;
        PyObject *item = brief(value, depth - 1, signs);
        parts[made] = item == NULL ? NULL : PyUnicode_FromFormat("%R: %U", key, item);
        Py_XDECREF(item);
        if (parts[made] == NULL)
            break;
    }
    if (made == count)
        whole = listed(parts, count, "{}");
    while (made > 0)
        Py_DECREF(parts[--made]);
    return whole;
}

static PyObject *brief_list(PyObject *items, int depth, const Signs *signs)
{
    Py_ssize_t count = PyList_GET_SIZE(items), made = 0;
    PyObject *parts[ITEMS_MAX] = {NULL}, *whole = NULL;
    if (depth == 0)
        return PyUnicode_FromFormat("[%zd items]", count);
    if (count > ITEMS_MAX) {
        PyObject *last = brief(PyList_GET_ITEM(items, count - 1), depth - 1, signs);
        if (last != NULL)
            whole = PyUnicode_FromFormat("[%zd items, last %U]", count, last);
        Py_XDECREF(last);
        return whole;
    }
    for (; made < count; made++)
        if ((parts[made] = brief(PyList_GET_ITEM(items, made), depth - 1, signs)) == NULL)
            break;
    if (made == count)
        whole = listed(parts, count, "[]");
    while (made > 0)
        Py_DECREF(parts[--made]);
    return whole;
}

/* NULL, mostly without an exception: it is not ours. */
static PyObject *brief(PyObject *value, int depth, const Signs *signs)
{
    if (PyUnicode_CheckExact(value))
        return brief_text(value, signs);
    if (is_dict(value))
        return brief_dict(value, depth, signs);
    if (is_list(value))
        return brief_list(value, depth, signs);
    bool is_number = PyLong_CheckExact(value) || PyFloat_CheckExact(value);
    if (is_number || PyBool_Check(value) || value == Py_None)
        return brief_number(value);
    return NULL;
}

/* brief(value, signs): a line about a value in which nothing looks secret. */
PyObject *native_brief(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Signs signs;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "brief(value, signs)");
        return NULL;
    }
    if (!signs_read(args[1], &signs))
        return NULL;
    PyObject *made = brief(args[0], DEPTH, &signs);
    if (made == NULL) { /* Whatever it is, its twin says it. */
        PyErr_Clear();
        return Py_NewRef(Py_None);
    }
    if (!is_clear(made, PyUnicode_GET_LENGTH(made), &signs)) {
        Py_DECREF(made);
        return Py_NewRef(Py_None);
    }
    return made;
}
