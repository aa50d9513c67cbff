/* Short forms of the usual values, as `engine/brief` gives them. */
#include "native.h"

enum { TEXT_CHARS_MAX = 60, ITEMS_MAX = 3, LOOKED_AT_MAX = 4096, DEPTH = 2 };

static const char ELLIPSIS[] = "\xe2\x80\xa6";

/* Everything here gives false, mostly without an exception, where a value is not ours. */
static bool brief(Buffer *line, PyObject *value, int depth, const Signs *signs);

static bool add_text(Buffer *line, const char *text)
{
    return buffer_add(line, text, strlen(text));
}

static bool add_number(Buffer *line, Py_ssize_t number, const char *behind)
{
    char made[32];
    PyOS_snprintf(made, sizeof made, "%zd", number);
    return add_text(line, made) && add_text(line, behind);
}

/* What Python's `repr` gives of a value, up to so many characters. */
static bool add_repr(Buffer *line, PyObject *value, Py_ssize_t chars)
{
    PyObject *whole = PyObject_Repr(value), *start = NULL;
    Py_ssize_t length;
    if (whole != NULL)
        start = chars < 0 ? Py_NewRef(whole) : PyUnicode_Substring(whole, 0, chars);
    const char *data = start == NULL ? NULL : PyUnicode_AsUTF8AndSize(start, &length);
    bool is_added = data != NULL && buffer_add(line, data, (size_t)length);
    Py_XDECREF(start);
    Py_XDECREF(whole);
    return is_added;
}

/* The first characters of a text in quotes, as `repr` has them. */
static bool add_quoted(Buffer *line, PyObject *text, Py_ssize_t chars)
{
    const uint8_t *data = PyUnicode_IS_ASCII(text) ? PyUnicode_1BYTE_DATA(text) : NULL;
    bool is_plain = data != NULL;
    for (Py_ssize_t n = 0; is_plain && n < chars; n++)
        is_plain = data[n] >= ' ' && data[n] <= '~' && data[n] != '\'' && data[n] != '\\';
    if (is_plain)
        return add_text(line, "'") && buffer_add(line, data, (size_t)chars) && add_text(line, "'");
    PyObject *start = PyUnicode_Substring(text, 0, chars);
    bool is_added = start != NULL && add_repr(line, start, -1);
    Py_XDECREF(start);
    return is_added;
}

/* Whether nothing in the first so many characters of a text would have to be left out. */
static bool is_clear(PyObject *text, Py_ssize_t chars, const Signs *signs)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(text) < chars ? PyUnicode_GET_LENGTH(text) : chars;
    if (PyUnicode_IS_ASCII(text))
        return !is_suspect(PyUnicode_DATA(text), (size_t)length, signs);
    PyObject *start = PyUnicode_Substring(text, 0, chars);
    const char *data = start == NULL ? NULL : PyUnicode_AsUTF8AndSize(start, &length);
    bool is_fine = data != NULL && !is_suspect((const uint8_t *)data, (size_t)length, signs);
    Py_XDECREF(start);
    return is_fine;
}

static bool brief_text(Buffer *line, PyObject *text, const Signs *signs)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    if (length <= TEXT_CHARS_MAX)
        return add_quoted(line, text, length);
    return is_clear(text, LOOKED_AT_MAX, signs) && add_quoted(line, text, TEXT_CHARS_MAX - 10) &&
           add_text(line, ELLIPSIS) && add_text(line, " (") && add_number(line, length, " long)");
}

static bool brief_dict(Buffer *line, PyObject *mapping, int depth, const Signs *signs)
{
    Py_ssize_t count = PyDict_GET_SIZE(mapping), at = 0;
    PyObject *key, *value;
    bool is_ours = add_text(line, "{"), is_first = true;
    if (depth == 0 || count > ITEMS_MAX)
        return is_ours && add_number(line, count, " keys}");
    while (is_ours && PyDict_Next(mapping, &at, &key, &value)) {
        is_ours = PyUnicode_CheckExact(key) && PyUnicode_GET_LENGTH(key) <= TEXT_CHARS_MAX &&
                  (is_first || add_text(line, ", ")) &&
                  add_quoted(line, key, PyUnicode_GET_LENGTH(key)) && add_text(line, ": ") &&
                  brief(line, value, depth - 1, signs);
        is_first = false;
    }
    return is_ours && add_text(line, "}");
}

static bool brief_list(Buffer *line, PyObject *items, int depth, const Signs *signs)
{
    Py_ssize_t count = PyList_GET_SIZE(items);
    bool is_ours = add_text(line, "[");
    if (depth == 0)
        return is_ours && add_number(line, count, " items]");
    if (count > ITEMS_MAX)
        return is_ours && add_number(line, count, " items, last ") &&
               brief(line, PyList_GET_ITEM(items, count - 1), depth - 1, signs) &&
               add_text(line, "]");
    for (Py_ssize_t n = 0; is_ours && n < PyList_GET_SIZE(items); n++)
        is_ours = (n == 0 || add_text(line, ", ")) &&
                  brief(line, PyList_GET_ITEM(items, n), depth - 1, signs);
    return is_ours && add_text(line, "]");
}

static bool brief(Buffer *line, PyObject *value, int depth, const Signs *signs)
{
    if (PyUnicode_CheckExact(value))
        return brief_text(line, value, signs);
    if (is_dict(value))
        return brief_dict(line, value, depth, signs);
    if (is_list(value))
        return brief_list(line, value, depth, signs);
    bool is_number = PyLong_CheckExact(value) || PyFloat_CheckExact(value);
    if (is_number || PyBool_Check(value) || value == Py_None)
        return add_repr(line, value, TEXT_CHARS_MAX); /* Of too many digits it is refused. */
    return false;
}

/* brief(value, signs): a line about a value in which nothing looks secret. */
PyObject *native_brief(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Signs signs;
    Buffer line;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "brief(value, signs)");
        return NULL;
    }
    if (!signs_read(args[1], &signs))
        return NULL;
    buffer_begin(&line);
    PyObject *made = NULL;
    if (brief(&line, args[0], DEPTH, &signs) && !is_suspect(line.bytes, line.length, &signs))
        made = PyUnicode_DecodeUTF8((char *)line.bytes, (Py_ssize_t)line.length, NULL);
    buffer_end(&line);
    if (made == NULL) { /* Whatever it is, its twin says it. */
        PyErr_Clear();
        return Py_NewRef(Py_None);
    }
    return made;
}
