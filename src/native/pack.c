/* msgpack, byte for byte as msgspec writes it. */
#include "native.h"

void buffer_begin(Buffer *buffer)
{
    buffer->bytes = buffer->first;
    buffer->length = 0;
    buffer->room = sizeof buffer->first;
}

void buffer_end(Buffer *buffer)
{
    if (buffer->bytes != buffer->first)
        PyMem_Free(buffer->bytes);
}

/* Room for so many bytes more; false with an exception where there is no memory. */
static bool grow(Buffer *buffer, size_t length)
{
    size_t room = buffer->room * 2 + length;
    bool is_first = buffer->bytes == buffer->first;
    uint8_t *bytes = PyMem_Realloc(is_first ? NULL : buffer->bytes, room);
    if (bytes == NULL) {
        PyErr_NoMemory();
        return false;
    }
    if (is_first)
        memcpy(bytes, buffer->first, buffer->length);
    buffer->bytes = bytes;
    buffer->room = room;
    return true;
}

bool buffer_add(Buffer *buffer, const void *data, size_t length)
{
    if (buffer->room - buffer->length < length && !grow(buffer, length))
        return false;
    memcpy(buffer->bytes + buffer->length, data, length);
    buffer->length += length;
    return true;
}

/* One byte that says what follows, and a number of `bytes` bytes, big-endian. */
static bool head(Buffer *buffer, int code, uint64_t number, int bytes)
{
    uint8_t made[9] = {(uint8_t)code};
    for (int n = 0; n < bytes; n++)
        made[1 + n] = (uint8_t)(number >> (8 * (bytes - 1 - n)));
    return buffer_add(buffer, made, 1 + (size_t)bytes);
}

/* A length: in the code itself, or in one, two or four bytes. A code of 0: there is no such form.
 */
static bool pack_length(Buffer *buffer, size_t length, size_t small, int fixed, int one, int two)
{
    if (length < small)
        return head(buffer, fixed | (int)length, 0, 0);
    if (one != 0 && length <= UINT8_MAX)
        return head(buffer, one, length, 1);
    if (length <= UINT16_MAX)
        return head(buffer, two, length, 2);
    return head(buffer, two + 1, length, 4);
}

bool pack_array(Buffer *buffer, size_t count)
{
    return pack_length(buffer, count, 16, 0x90, 0, 0xdc);
}

bool pack_map(Buffer *buffer, size_t count)
{
    return pack_length(buffer, count, 16, 0x80, 0, 0xde);
}

static bool pack_natural(Buffer *buffer, uint64_t value)
{
    if (value < 128)
        return head(buffer, (int)value, 0, 0);
    if (value <= UINT8_MAX)
        return head(buffer, 0xcc, value, 1);
    if (value <= UINT16_MAX)
        return head(buffer, 0xcd, value, 2);
    if (value <= UINT32_MAX)
        return head(buffer, 0xce, value, 4);
    return head(buffer, 0xcf, value, 8);
}

bool pack_integer(Buffer *buffer, long long value)
{
    if (value >= 0)
        return pack_natural(buffer, (uint64_t)value);
    if (value >= -32)
        return head(buffer, 0xe0 | (int)(value + 32), 0, 0);
    if (value >= INT8_MIN)
        return head(buffer, 0xd0, (uint64_t)value, 1);
    if (value >= INT16_MIN)
        return head(buffer, 0xd1, (uint64_t)value, 2);
    if (value >= INT32_MIN)
        return head(buffer, 0xd2, (uint64_t)value, 4);
    return head(buffer, 0xd3, (uint64_t)value, 8);
}

/* An extension item. */
bool pack_item(Buffer *buffer, int code, const void *data, size_t length)
{
    uint8_t kind = (uint8_t)code;
    bool is_fixed = length == 1 || length == 2 || length == 4 || length == 8 || length == 16;
    bool is_done = is_fixed ? head(buffer,
                                   length == 1   ? 0xd4
                                   : length == 2 ? 0xd5
                                   : length == 4 ? 0xd6
                                   : length == 8 ? 0xd7
                                                 : 0xd8,
                                   0, 0)
                            : pack_length(buffer, length, 0, 0, 0xc7, 0xc8);
    return is_done && buffer_add(buffer, &kind, 1) && buffer_add(buffer, data, length);
}

bool is_basic(PyObject *value)
{
    return PyUnicode_CheckExact(value) || PyLong_CheckExact(value) || value == Py_None ||
           PyBool_Check(value) || PyFloat_CheckExact(value) || PyBytes_CheckExact(value);
}

static bool pack_number(Buffer *buffer, PyObject *value)
{
    int is_beyond;
    long long number = PyLong_AsLongLongAndOverflow(value, &is_beyond);
    if (is_beyond < 0)
        return false;
    if (is_beyond == 0)
        return pack_integer(buffer, number);
    unsigned long long large = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    return pack_natural(buffer, large);
}

/* False without an exception: it is beyond what msgpack holds, or the exception is of no use. */
bool pack_basic(Buffer *buffer, PyObject *value)
{
    if (PyUnicode_CheckExact(value)) {
        Py_ssize_t length;
        const char *text = PyUnicode_AsUTF8AndSize(value, &length);
        if (text == NULL) { /* Half a character. */
            PyErr_Clear();
            return false;
        }
        return pack_length(buffer, (size_t)length, 32, 0xa0, 0xd9, 0xda) &&
               buffer_add(buffer, text, (size_t)length);
    }
    if (PyLong_CheckExact(value))
        return pack_number(buffer, value);
    if (value == Py_None)
        return head(buffer, 0xc0, 0, 0);
    if (PyBool_Check(value))
        return head(buffer, value == Py_True ? 0xc3 : 0xc2, 0, 0);
    if (PyFloat_CheckExact(value)) {
        double number = PyFloat_AS_DOUBLE(value);
        uint64_t bits;
        memcpy(&bits, &number, sizeof bits);
        return head(buffer, 0xcb, bits, 8);
    }
    if (!PyBytes_CheckExact(value))
        return false;
    size_t length = (size_t)PyBytes_GET_SIZE(value);
    return pack_length(buffer, length, 0, 0, 0xc4, 0xc5) &&
           buffer_add(buffer, PyBytes_AS_STRING(value), length);
}
