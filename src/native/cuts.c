/* Which values can be cut out of a journal row, as `store/cuttable` finds them. */
#include "native.h"

enum { PAIRS = 2, ANSWER = 3, LEAF = 5, STORED = 6, LEAF_AT = 7 };
enum { VERSION = 1, CUT_BYTES_MIN = 32, DEPTH_MAX = 100, OF_ANSWER = -1 };

/* A kind of msgpack item, what its head says, and where its content begins. */
typedef enum { NOTHING, BASIC, NUMBER, TEXT, BYTES, ARRAY, MAP, ITEM } Kind;

typedef struct {
    Kind kind;
    uint64_t length; /* of bytes, or how many items; of a number, what it is if not negative */
    int code;
    const uint8_t *content;
} Head;

typedef struct {
    const uint8_t *at, *end;
} Cursor;

static uint64_t big_endian(const uint8_t *from, int bytes)
{
    uint64_t number = 0;
    for (int n = 0; n < bytes; n++)
        number = number << 8 | from[n];
    return number;
}

/* Read the head of an item and step behind it; of what holds no items, behind that. */
static bool read_head(Cursor *cursor, Head *head)
{
    static const uint8_t SIZES[32] = {0, 0, 0, 0, 1, 2, 4, 1, 2, 4, 4, 8, 1, 2, 4, 8,
                                      1, 2, 4, 8, 0, 0, 0, 0, 0, 1, 2, 4, 2, 4, 2, 4};
    if (cursor->at >= cursor->end)
        return false;
    uint8_t byte = *cursor->at++;
    head->kind = BASIC;
    head->length = 0;
    if (byte < 0x80 || byte >= 0xe0) {
        head->kind = byte < 0x80 ? NUMBER : BASIC;
        head->length = byte & 0x7f;
        return true;
    }
    if (byte < 0xc0) {
        head->kind = byte < 0x90 ? MAP : byte < 0xa0 ? ARRAY : TEXT;
        head->length = byte & (head->kind == TEXT ? 31 : 15);
    } else {
        int size = SIZES[byte - 0xc0];
        if (cursor->end - cursor->at < size || byte == 0xc1)
            return false;
        uint64_t number = big_endian(cursor->at, size);
        cursor->at += size;
        if (byte <= 0xc3 || byte == 0xca || byte == 0xcb || (byte >= 0xd0 && byte <= 0xd3))
            return true;
        head->kind = byte <= 0xc6   ? BYTES
                     : byte <= 0xc9 ? ITEM
                     : byte <= 0xcf ? NUMBER
                     : byte <= 0xd8 ? ITEM
                     : byte <= 0xdb ? TEXT
                     : byte <= 0xdd ? ARRAY
                                    : MAP;
        head->length = byte >= 0xd4 && byte <= 0xd8 ? (uint64_t)1 << (byte - 0xd4) : number;
    }
    if (head->kind == ITEM) {
        if (cursor->at >= cursor->end)
            return false;
        head->code = (int8_t)*cursor->at++;
    }
    head->content = cursor->at;
    if (head->kind == TEXT || head->kind == BYTES || head->kind == ITEM) {
        if ((uint64_t)(cursor->end - cursor->at) < head->length)
            return false;
        cursor->at += head->length;
    }
    return true;
}

static bool read_kind(Cursor *cursor, Kind kind, Head *head)
{
    return read_head(cursor, head) && head->kind == kind;
}

static bool skip(Cursor *cursor, int depth)
{
    Head head;
    if (depth > DEPTH_MAX || !read_head(cursor, &head))
        return false;
    uint64_t inside = head.kind == ARRAY ? head.length : head.kind == MAP ? 2 * head.length : 0;
    while (inside-- > 0)
        if (!skip(cursor, depth + 1))
            return false;
    return true;
}

/* How many containers an item is and holds; `has_items` where some have no word in msgpack. */
static bool count_in(Cursor *cursor, int depth, Py_ssize_t *count, bool *has_items)
{
    Head head, key;
    if (depth > DEPTH_MAX || !read_head(cursor, &head))
        return false;
    if (head.kind == ITEM)
        *has_items = true;
    if (head.kind != ARRAY && head.kind != MAP)
        return true;
    ++*count;
    while (head.length-- > 0) {
        if (head.kind == MAP && !read_kind(cursor, TEXT, &key))
            return false;
        if (!count_in(cursor, depth + 1, count, has_items))
            return false;
    }
    return true;
}

typedef struct {
    const uint8_t *body;
    PyObject *found;
    Py_ssize_t index, ordinal;
} Search;

static bool note(Search *search, Py_ssize_t count, Py_ssize_t ordinal, const uint8_t *start,
                 const uint8_t *stop)
{
    PyObject *cut =
        Py_BuildValue("nnnnn", count, search->index, ordinal, (Py_ssize_t)(start - search->body),
                      (Py_ssize_t)(stop - search->body));
    bool is_noted = cut != NULL && PyList_Append(search->found, cut) == 0;
    Py_XDECREF(cut);
    return is_noted;
}

/* How many containers an item stands for that were not met before. */
static bool numbers_of(const Head *item, Py_ssize_t *numbers)
{
    Cursor inside = {item->content, item->content + item->length};
    Head head, each;
    *numbers = item->code == LEAF || item->code == LEAF_AT;
    if (item->code == ANSWER) {
        if (!read_kind(&inside, ARRAY, &head) || !read_kind(&inside, NUMBER, &each))
            return false;
        *numbers = (Py_ssize_t)each.length;
    } else if (item->code == STORED) {
        if (!read_kind(&inside, ARRAY, &head) || !read_kind(&inside, ARRAY, &head))
            return false;
        while (head.length-- > 0) {
            if (!read_kind(&inside, NUMBER, &each))
                return false;
            *numbers += (Py_ssize_t)each.length;
        }
    }
    return *numbers >= 0 && *numbers <= INT32_MAX;
}

static bool search_value(Search *search, Cursor *cursor, int depth);

/* Look at the values in a container whose head was read. */
static bool search_inside(Search *search, Cursor *cursor, const Head *head, int depth)
{
    Head key;
    if (head->kind == ITEM) { /* A dict with keys that are no text: key, value, key, value ... */
        Cursor inside = {head->content, head->content + head->length};
        if (!read_kind(&inside, ARRAY, &key))
            return false;
        for (uint64_t n = 0; n < key.length / 2; n++)
            if (!skip(&inside, depth) || !search_value(search, &inside, depth))
                return false;
        return true;
    }
    for (uint64_t n = 0; n < head->length; n++)
        if ((head->kind == MAP && !read_kind(cursor, TEXT, &key)) ||
            !search_value(search, cursor, depth))
            return false;
    return true;
}

static bool search_value(Search *search, Cursor *cursor, int depth)
{
    Head head;
    Cursor start = *cursor;
    if (depth > DEPTH_MAX || !read_head(cursor, &head))
        return false;
    if (head.kind == ITEM && head.code != PAIRS) {
        Py_ssize_t numbers;
        bool is_known = numbers_of(&head, &numbers);
        search->ordinal += is_known ? numbers : 0;
        return is_known;
    }
    if (head.kind != ARRAY && head.kind != MAP && head.kind != ITEM)
        return true;
    Py_ssize_t ordinal = search->ordinal++, count = 0;
    if (head.kind == MAP) {
        bool has_items = false;
        Cursor behind = start;
        if (!count_in(&behind, depth, &count, &has_items))
            return false;
        if (!has_items) { /* Whole, with all that is in it. */
            search->ordinal += count - 1;
            *cursor = behind;
            return behind.at - start.at < CUT_BYTES_MIN ||
                   note(search, count, ordinal, start.at, behind.at);
        }
    }
    return search_inside(search, cursor, &head, depth + 1);
}

/* The dicts that a save wrote. */
static bool search_save(Search *search, const Head *bytes)
{
    Cursor cursor = {bytes->content, bytes->content + bytes->length};
    Head document, head;
    search->ordinal = 0;
    if (bytes->length < CUT_BYTES_MIN)
        return true;
    if (!read_kind(&cursor, ARRAY, &document) || document.length < 5 || document.length % 3 != 2)
        return false;
    if (!read_kind(&cursor, NUMBER, &head) || head.length != VERSION || !skip(&cursor, 0))
        return false;
    for (uint64_t n = 2; n < document.length; n += 3) {
        if (!skip(&cursor, 0) || !skip(&cursor, 0) || !read_head(&cursor, &head))
            return false;
        bool is_body = head.kind == ARRAY || head.kind == MAP;
        if ((!is_body && !(head.kind == ITEM && head.code == PAIRS)) ||
            !search_inside(search, &cursor, &head, 0))
            return false;
    }
    return true;
}

/* An answer that is a dict, as a whole. */
static bool search_answer(Search *search, const Head *bytes)
{
    const uint8_t *data = bytes->content;
    Cursor cursor = {data + 1, data + bytes->length};
    Py_ssize_t count = 0;
    bool has_items = false;
    if (bytes->length <= CUT_BYTES_MIN || data[0] != 0)
        return true;
    if ((data[1] & 0xf0) != 0x80 && data[1] != 0xde && data[1] != 0xdf)
        return true;
    if (!count_in(&cursor, 0, &count, &has_items) || cursor.at != cursor.end)
        return false;
    return has_items || note(search, count, OF_ANSWER, data + 1, cursor.at);
}

/* Where the value or the save of an entry stands in it: tag, place, whether it is a save. */
static bool place_of(PyObject *fields, uint64_t tag, long *place, bool *is_save)
{
    *place = -1;
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(fields); n++) {
        PyObject *field = PyTuple_GET_ITEM(fields, n);
        if (!PyTuple_CheckExact(field) || PyTuple_GET_SIZE(field) != 3)
            return false;
        if ((uint64_t)PyLong_AsLong(PyTuple_GET_ITEM(field, 0)) == tag) {
            *place = PyLong_AsLong(PyTuple_GET_ITEM(field, 1));
            *is_save = PyTuple_GET_ITEM(field, 2) == Py_True;
        }
    }
    return !PyErr_Occurred();
}

static bool search_entry(Search *search, Cursor *cursor, PyObject *fields)
{
    Head entry, tag, field;
    long place;
    bool is_save = false;
    if (!read_kind(cursor, ARRAY, &entry) || entry.length == 0 || !read_kind(cursor, NUMBER, &tag))
        return false;
    if (!place_of(fields, tag.length, &place, &is_save))
        return false;
    for (uint64_t n = 1; n < entry.length; n++) {
        if ((long)n != place) {
            if (!skip(cursor, 0))
                return false;
            continue;
        }
        const uint8_t *before = cursor->at;
        if (!read_head(cursor, &field) || (field.kind != BYTES && *before != 0xc0))
            return false;
        if (field.kind == BYTES &&
            !(is_save ? search_save(search, &field) : search_answer(search, &field)))
            return false;
    }
    return true;
}

/* cuts(row, fields): count, entry, ordinal, start and end of each value in the bytes of a row. */
PyObject *native_cuts(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyBytes_CheckExact(args[0]) || !PyTuple_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "cuts(row: bytes, fields: tuple)");
        return NULL;
    }
    const uint8_t *body = (const uint8_t *)PyBytes_AS_STRING(args[0]);
    Search search = {.body = body, .found = PyList_New(0)};
    if (search.found == NULL)
        return NULL;
    Cursor cursor = {body, body + PyBytes_GET_SIZE(args[0])};
    Head row, entries = {.length = 0};
    bool is_done = read_kind(&cursor, ARRAY, &row) && row.length == 3 && skip(&cursor, 0) &&
                   skip(&cursor, 0) && read_kind(&cursor, ARRAY, &entries);
    for (; is_done && search.index < (Py_ssize_t)entries.length; search.index++)
        is_done = search_entry(&search, &cursor, args[1]);
    if (is_done && cursor.at == cursor.end)
        return search.found;
    Py_DECREF(search.found);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}
