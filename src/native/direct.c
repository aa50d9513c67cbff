/* Rows that the disk keeps, waited for by looking.
 *
 * Linux can be handed a write that passes by the page cache and is flushed (`O_DIRECT`,
 * `RWF_DSYNC`), and tells its end in memory that the process sees. It is looked at there for a
 * moment; where the disk takes longer we sleep after all, and leave the next rows to who sleeps at
 * once. */
#include "native.h"

/* Some systems have a compiler and not these: Alpine keeps them in a package of their own. */
#if defined(__linux__) && defined(__has_include)
#if __has_include(<linux/aio_abi.h>) && __has_include(<linux/fs.h>)
#include <linux/fs.h>
#endif
#endif

#ifdef RWF_NOWAIT /* Since Linux 4.13, as are flags of such writes. */

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Where looking did not pay, some rows are left to who sleeps: 1 where the disk answered late, 32
 * where others want the processor that we would look with, and each time twice as many as the time
 * before, until so many answers in a row were looked for in peace. */
enum { LATE = 0, CROWDED = 5, WARY_MAX = 10, CALM = 256 };

/* What the kernel shows of its answers, as in its `fs/aio.c`; libaio and fio read it too. */
typedef struct {
    uint32_t id, places, head, tail, magic, compat, incompat, header_length;
    struct io_event events[];
} Answers;

enum { ANSWERS_MAGIC = 0xa10a10a1 };

struct Direct {
    aio_context_t answers; /* 0 at first. */
    pid_t owner;           /* A forked child has the file, but hears no answers. */
    int fd, wary;
    unsigned few, left_out, in_peace;
    int64_t look_ns;
};

static const char *const NAME = "holdfast._native.direct";

/* Queues that stores gave back, for those opened next: ending one takes the kernel 30 ms, in which
 * all threads of Python would wait. Their lock is Python's own. */
enum { IDLE_MAX = 64 };

static struct {
    aio_context_t queues[IDLE_MAX];
    int count;
    pid_t owner;
} idle;

static void give_queue(aio_context_t queue)
{
    if (idle.owner != getpid()) /* What stands there is another process's. */
        idle.count = 0;
    idle.owner = getpid();
    if (idle.count < IDLE_MAX)
        idle.queues[idle.count++] = queue;
    else
        syscall(SYS_io_destroy, queue);
}

/* A queue for one write and its answer; 0 where the kernel has none that we know how to read. */
static aio_context_t take_queue(void)
{
    if (idle.owner == getpid() && idle.count > 0)
        return idle.queues[--idle.count];
    aio_context_t queue = 0;
    if (syscall(SYS_io_setup, 1, &queue) != 0)
        return 0;
    const Answers *answers = (const Answers *)queue;
    if (answers->magic == ANSWERS_MAGIC && answers->incompat == 0)
        return queue;
    syscall(SYS_io_destroy, queue);
    return 0;
}

static void direct_end(PyObject *capsule)
{
    Direct *direct = PyCapsule_GetPointer(capsule, NAME);
    if (direct->owner == getpid() && direct->answers != 0)
        give_queue(direct->answers);
    close(direct->fd);
    PyMem_Free(direct);
}

static bool is_same_file(int one, int other)
{
    struct stat a, b;
    return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Open the file for such writes; false where its file system has none. */
static bool direct_begin(Direct *direct, const char *path, int fd)
{
    direct->fd = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
    if (direct->fd < 0)
        return false;
    if (is_same_file(direct->fd, fd))
        return true;
    close(direct->fd);
    return false;
}

/* direct(path, fd, few, look_ns): what `add_row` takes to write to the open file, or None. After so
 * few rows it looks so long for each answer. */
PyObject *native_direct(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 4 || !PyBytes_Check(args[0]) || !PyLong_Check(args[1]) || !PyLong_Check(args[2]) ||
        !PyLong_Check(args[3])) {
        PyErr_SetString(PyExc_TypeError, "direct(path, fd, few, look_ns)");
        return NULL;
    }
    int fd = (int)PyLong_AsLong(args[1]);
    unsigned few = (unsigned)PyLong_AsUnsignedLong(args[2]);
    int64_t look_ns = PyLong_AsLongLong(args[3]);
    if (PyErr_Occurred())
        return NULL;
    Direct *direct = PyMem_Calloc(1, sizeof *direct);
    if (direct == NULL)
        return PyErr_NoMemory();
    direct->owner = getpid();
    direct->few = few;
    direct->look_ns = look_ns;
    if (!direct_begin(direct, PyBytes_AS_STRING(args[0]), fd)) {
        PyMem_Free(direct);
        return Py_NewRef(Py_None);
    }
    PyObject *capsule = PyCapsule_New(direct, NAME, direct_end);
    if (capsule == NULL) {
        close(direct->fd);
        PyMem_Free(direct);
    }
    return capsule;
}

Direct *direct_of(PyObject *given)
{
    if (!PyCapsule_IsValid(given, NAME))
        return NULL;
    Direct *direct = PyCapsule_GetPointer(given, NAME);
    if (direct->answers == 0 && direct->owner == getpid() && direct->few-- == 0) {
        direct->answers = take_queue();
        if (direct->answers == 0) /* Nor will it be there for the next row. */
            direct->owner = 0;
    }
    return direct->answers != 0 ? direct : NULL;
}

typedef struct {
    Answers *answers;
    struct io_event *answer;
} Looked;

/* Take the answer if it is there. */
static bool is_answered(void *what)
{
    const Looked *looked = what;
    Answers *answers = looked->answers;
    uint32_t head = __atomic_load_n(&answers->head, __ATOMIC_RELAXED);
    if (__atomic_load_n(&answers->tail, __ATOMIC_ACQUIRE) == head)
        return false;
    *looked->answer = answers->events[head];
    __atomic_store_n(&answers->head, (head + 1) % answers->places, __ATOMIC_RELEASE);
    return true;
}

/* Sleep until the answer is there. */
static bool sleep_for(Direct *direct, struct io_event *answer)
{
    long heard;
    do
        heard = syscall(SYS_io_getevents, direct->answers, 1, 1, answer, NULL);
    while (heard < 0 && errno == EINTR);
    if (heard == 1)
        return true;
    syscall(SYS_io_destroy, direct->answers); /* Waits: what is written from may be freed then. */
    direct->owner = 0;
    errno = EIO;
    return false;
}

void direct_yield(Direct *direct)
{
    if (direct != NULL && direct->left_out < 1u << CROWDED)
        direct->left_out = 1u << CROWDED;
}

/* Looking did not pay, for this reason. */
static void leave_out(Direct *direct, int reason)
{
    if (direct->wary < reason)
        direct->wary = reason;
    direct->left_out = 1u << direct->wary;
    if (direct->wary < WARY_MAX)
        direct->wary++;
    direct->in_peace = 0;
}

/* Wait for the answer: look, and sleep where that takes too long; false where no answer comes. */
static bool wait_for(Direct *direct, struct io_event *answer)
{
    Looked looked = {(Answers *)direct->answers, answer};
    bool was_away;
    bool is_there = look_for(is_answered, &looked, direct->look_ns, &was_away);
    if (was_away)
        leave_out(direct, CROWDED);
    else if (!is_there)
        leave_out(direct, LATE);
    else if (++direct->in_peace == CALM)
        direct->wary = direct->in_peace = 0;
    return is_there || sleep_for(direct, answer);
}

int direct_keep(Direct *direct, const uint8_t *data, size_t length, long long at)
{
    if (direct == NULL || direct->owner != getpid())
        return 0;
    if (direct->left_out > 0) {
        direct->left_out--;
        return 0;
    }
    struct iocb asked = {.aio_lio_opcode = IOCB_CMD_PWRITE,
                         .aio_rw_flags = RWF_DSYNC,
                         .aio_fildes = (uint32_t)direct->fd,
                         .aio_buf = (uint64_t)(uintptr_t)data,
                         .aio_nbytes = length,
                         .aio_offset = at};
    struct iocb *all = &asked;
    struct io_event answer;
    bool is_taken = syscall(SYS_io_submit, direct->answers, 1, &all) == 1;
    if (is_taken && !wait_for(direct, &answer))
        return -1;
    if (!is_taken || answer.res == -EINVAL || answer.res == -EOPNOTSUPP) {
        leave_out(direct, CROWDED); /* The file system has no such writes, or not now. */
        return 0;
    }
    if (answer.res == (int64_t)length)
        return 1;
    errno = answer.res < 0 ? (int)-answer.res : ENOSPC;
    return -1;
}

#else

PyObject *native_direct(PyObject *Py_UNUSED(module), PyObject *const *Py_UNUSED(args),
                        Py_ssize_t Py_UNUSED(count))
{
    return Py_NewRef(Py_None);
}

Direct *direct_of(PyObject *Py_UNUSED(given))
{
    return NULL;
}

void direct_yield(Direct *Py_UNUSED(direct))
{
}

int direct_keep(Direct *Py_UNUSED(direct), const uint8_t *Py_UNUSED(data),
                size_t Py_UNUSED(length), long long Py_UNUSED(at))
{
    return 0;
}

#endif
