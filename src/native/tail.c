/* One row added to the tail of a store, as `store/backends/tail` and `heads` do it. */
#include "native.h"

#ifdef _WIN32

void crc32_ready(void)
{
}

PyObject *native_add_row(PyObject *Py_UNUSED(module), PyObject *const *Py_UNUSED(args),
                         Py_ssize_t Py_UNUSED(count))
{
    return PyLong_FromLong(0); /* There is no store there. */
}

#else

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

enum { SLOT = 4096, HEAD = 24, ROW = 13, NOTES = 64, NOTE = 44, NOTE_MAC = 32 };
/* Shared numbers of 8 bytes each; the bell has two of 4 bytes before them. */
enum { UNSETTLED = 2, GENERATION = 3, END = 4, FENCE = 5, DAMAGED = 6, NUMBERS = 7 };
enum { LISTENED = 3 };
/* What became of a row. What is not done is left to Python, which waits or says why. */
enum { NOT_DONE = 0, DONE = 1, TO_RING = 2 };

static uint32_t crc_table[8][256];

void crc32_ready(void)
{
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t value = n;
        for (int bit = 0; bit < 8; bit++)
            value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
        crc_table[0][n] = value;
    }
    for (int table = 1; table < 8; table++)
        for (int n = 0; n < 256; n++) {
            uint32_t value = crc_table[table - 1][n];
            crc_table[table][n] = value >> 8 ^ crc_table[0][value & 0xff];
        }
}

/* As `zlib.crc32`, eight bytes at a time. */
static uint32_t crc32_of(uint32_t crc, const uint8_t *data, size_t length)
{
    crc = ~crc;
    for (; length >= 8; data += 8, length -= 8) {
        uint32_t low = crc ^ ((uint32_t)data[0] | (uint32_t)data[1] << 8 |
                              (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24);
        crc = crc_table[7][low & 0xff] ^ crc_table[6][low >> 8 & 0xff] ^
              crc_table[5][low >> 16 & 0xff] ^ crc_table[4][low >> 24] ^ crc_table[3][data[4]] ^
              crc_table[2][data[5]] ^ crc_table[1][data[6]] ^ crc_table[0][data[7]];
    }
    while (length-- > 0)
        crc = crc >> 8 ^ crc_table[0][(crc ^ *data++) & 0xff];
    return ~crc;
}

typedef struct {
    uint64_t id;
    const uint8_t *mac, *body;
    size_t of_mac, of_body;
} Row;

/* How many bytes the slots of a row take. */
static size_t slots_of(const Row *row)
{
    return (HEAD + ROW + row->of_mac + row->of_body + SLOT - 1) / SLOT * SLOT;
}

/* The record that holds a row at a place of the file, and zeros behind it to the end of its last
 * slot: whole slots are written without reading what stood there. */
static void write_record(uint8_t *record, const Row *row, uint32_t seed, uint64_t generation,
                         uint64_t at)
{
    uint8_t *end = put(record, 0x48467431 /* HFt1 */, 4);
    end = put(end, generation, 8);
    end = put(end, at / SLOT, 4);
    end = put(end, ROW + row->of_mac + row->of_body, 4);
    uint8_t *check = end;
    end = put(end + 4, row->id, 8);
    end = put(end, row->of_mac, 1);
    end = put(end, row->of_body, 4);
    memcpy(end, row->mac, row->of_mac);
    memcpy(end + row->of_mac, row->body, row->of_body);
    uint32_t crc = crc32_of(seed, record, HEAD - 4);
    put(check, crc32_of(crc, record + HEAD, ROW + row->of_mac + row->of_body), 4);
    end += row->of_mac + row->of_body;
    memset(end, 0, (size_t)(record + slots_of(row) - end));
}

static int flush(int fd)
{
#ifdef __APPLE__
    return fcntl(fd, F_FULLFSYNC);
#else
    return fdatasync(fd);
#endif
}

static ssize_t write_at(int fd, const uint8_t *data, size_t length, off_t at)
{
    ssize_t written;
    do
        written = pwrite(fd, data, length, at);
    while (written < 0 && errno == EINTR);
    if (written >= 0 && (size_t)written < length) {
        errno = ENOSPC;
        return -1;
    }
    return written;
}

/* Write slots and have the disk keep them; -1 with `errno` where it fails. */
static int keep(int fd, Direct *direct, const uint8_t *record, size_t length, uint64_t at)
{
    int done = direct_keep(direct, record, length, (long long)at);
    if (done == 0)
        done = write_at(fd, record, length, (off_t)at) < 0 ? -1 : flush(fd);
    return done < 0 ? -1 : 0;
}

/* Note a row as the newest that was acknowledged of its branch. */
static int note(int fd, const Row *row)
{
    uint8_t noted[NOTE] = {0};
    put(noted, row->id, 8);
    memcpy(noted + 8, row->mac, row->of_mac < NOTE_MAC ? row->of_mac : NOTE_MAC);
    put(noted + 8 + NOTE_MAC, crc32_of(0, noted, 8 + NOTE_MAC), 4);
    return write_at(fd, noted, NOTE, (off_t)((row->id >> 32) % NOTES * NOTES)) < 0 ? -1 : 0;
}

typedef struct {
    uint64_t room, fence;
    uint32_t seed;
} Expected;

/* So long we look whether somebody else gives the lock back; then Python sleeps and is woken. */
enum { LOCK_NS_MAX = 2 * 1000 * 1000 };

static bool is_locked(void *lock)
{
    return flock(*(const int *)lock, LOCK_EX | LOCK_NB) == 0;
}

/* Add a row while nobody else commits, and note it; -1 with `errno` where the disk fails. */
static int add_row(const int files[3], Direct *direct, volatile uint64_t *shared,
                   const Expected *expected, const Row *row, uint8_t *record)
{
    size_t length = slots_of(row);
    int lock = files[0], tail = files[1], heads = files[2];
    if (!is_locked(&lock)) {
        bool was_away;
        if (!look_for(is_locked, &lock, LOCK_NS_MAX, &was_away))
            return NOT_DONE;
        direct_yield(direct);
    }
    int done = NOT_DONE, failed = 0;
    uint64_t at = shared[END];
    if (!shared[UNSETTLED] && !shared[DAMAGED] && shared[FENCE] == expected->fence &&
        at <= expected->room && length <= expected->room - at) {
        write_record(record, row, expected->seed, shared[GENERATION], at);
        shared[UNSETTLED] = 1;
        done = -1;
        if (keep(tail, direct, record, length, at) == 0) {
            shared[END] = at + length;
            shared[UNSETTLED] = 0;
            done = ((volatile uint32_t *)shared)[LISTENED] ? TO_RING : DONE;
        }
        failed = errno;
    }
    flock(lock, LOCK_UN);
    errno = failed;
    if (done > 0 && note(heads, row) < 0)
        done = -1;
    return done;
}

/* add_row(files, shared, room, fence, seed, id, mac, body, direct): 1 if the row was added to the
 * tail and noted, 2 if somebody is to be woken too, 0 if that is left to Python. `files` are those
 * of the lock, the tail and the note; `direct` is None or what that gave of the tail. */
PyObject *native_add_row(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    bool are_numbers = count == 9;
    for (int n = 2; are_numbers && n < 6; n++)
        are_numbers = PyLong_Check(args[n]);
    if (!are_numbers || !PyTuple_CheckExact(args[0]) || PyTuple_GET_SIZE(args[0]) != 3 ||
        !PyBytes_CheckExact(args[6]) || !PyBytes_CheckExact(args[7])) {
        PyErr_SetString(PyExc_TypeError,
                        "add_row(files, shared, room, fence, seed, id, mac, body, direct)");
        return NULL;
    }
    int files[3];
    for (int n = 0; n < 3; n++)
        files[n] = (int)PyLong_AsLong(PyTuple_GET_ITEM(args[0], n));
    Expected expected = {.room = PyLong_AsUnsignedLongLong(args[2]),
                         .fence = PyLong_AsUnsignedLongLong(args[3]),
                         .seed = (uint32_t)PyLong_AsUnsignedLong(args[4])};
    Row row = {.id = PyLong_AsUnsignedLongLong(args[5]),
               .mac = (const uint8_t *)PyBytes_AS_STRING(args[6]),
               .of_mac = (size_t)PyBytes_GET_SIZE(args[6]),
               .body = (const uint8_t *)PyBytes_AS_STRING(args[7]),
               .of_body = (size_t)PyBytes_GET_SIZE(args[7])};
    if (PyErr_Occurred())
        return NULL;
    if (row.of_mac > UINT8_MAX || row.of_body > expected.room)
        return PyLong_FromLong(NOT_DONE);
    Py_buffer shared;
    if (PyObject_GetBuffer(args[1], &shared, PyBUF_WRITABLE) < 0)
        return NULL;
    uint8_t *record = aligned_alloc(SLOT, slots_of(&row));
    if (record == NULL || shared.len < NUMBERS * 8) {
        PyBuffer_Release(&shared);
        free(record);
        return PyErr_NoMemory();
    }
    Direct *direct = direct_of(args[8]);
    int done, failed;
    Py_BEGIN_ALLOW_THREADS
    done = add_row(files, direct, shared.buf, &expected, &row, record);
    failed = errno;
    Py_END_ALLOW_THREADS
    free(record);
    PyBuffer_Release(&shared);
    if (done < 0) {
        errno = failed;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    return PyLong_FromLong(done);
}

#endif
