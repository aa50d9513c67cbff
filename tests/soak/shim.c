/* Makes calls that change a file below a folder fail or stall: loaded before the C library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { SHORT = -1, STALL = -2 };
/* Kinds of calls: those that flush, that write bytes, that change names. */
enum { FLUSHES = 1, BYTES = 2, NAMES = 4 };

static char prefix[4096];
static size_t prefix_length;
static atomic_long count, wanted;
static long lasting;
static int fault, chosen;
static unsigned stall_s;

/* From now on count calls of these kinds below `folder`; the `nth` fails with `error`, is cut short
   or takes `seconds` longer, and so do the next ones, `times` in all. */
void hf_arm_for(const char *folder, long nth, int error, int kinds, long times, unsigned seconds) {
    strncpy(prefix, folder, sizeof prefix - 1);
    fault = error;
    chosen = kinds;
    lasting = times;
    stall_s = seconds;
    atomic_store(&count, 0);
    atomic_store(&wanted, nth);
    prefix_length = strlen(prefix);
}

/* The `nth` call of any kind fails, once. */
void hf_arm(const char *folder, long nth, int error) {
    hf_arm_for(folder, nth, error, FLUSHES | BYTES | NAMES, 1, 0);
}

long hf_count(void) { return atomic_load(&count); }

static int is_due(const char *path, int kind) {
    if (!prefix_length || !(chosen & kind) || strncmp(path, prefix, prefix_length)) return 0;
    long late = atomic_fetch_add(&count, 1) + 1 - atomic_load(&wanted);
    if (atomic_load(&wanted) < 1 || late < 0 || late >= lasting) return 0;
    if (fault != STALL) return 1;
    sleep(stall_s);
    return 0;
}

static int is_due_fd(int fd, int kind) {
    char link[64], path[4096];
    if (!prefix_length) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_due(path, kind);
}

static int failed(void) {
    errno = fault == SHORT ? EIO : fault;
    return -1;
}

#define REAL(type, name, ...)                                    \
    static type (*real)(__VA_ARGS__);                            \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (is_due_fd(fd, BYTES)) {
        if (fault != SHORT || size < 2) return failed();
        size /= 2;
    }
    return real(fd, data, size);
}

#define PWRITE(name, offset)                                              \
    ssize_t name(int fd, const void *data, size_t size, offset at) {      \
        REAL(ssize_t, #name, int, const void *, size_t, offset);          \
        if (is_due_fd(fd, BYTES)) {                                              \
            if (fault != SHORT || size < 2) return failed();              \
            size /= 2;                                                    \
        }                                                                 \
        return real(fd, data, size, at);                                  \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

/* A write that is handed to the kernel fails there: no file may be that long for a moment, so the
   answer is EFBIG whatever the fault. */
static long submit(long (*real)(long, ...), long to, struct iocb **writes) {
    int is_failing = is_due_fd((int)writes[0]->aio_fildes, BYTES | FLUSHES);
    if (is_failing && fault == SHORT) writes[0]->aio_nbytes /= 2;
    if (!is_failing || fault == SHORT) return real(SYS_io_submit, to, 1, writes);
    struct rlimit before, none;
    getrlimit(RLIMIT_FSIZE, &before);
    none = before;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_FSIZE, &none);
    long done = real(SYS_io_submit, to, 1, writes);
    setrlimit(RLIMIT_FSIZE, &before);
    return done;
}

long syscall(long number, ...) {
    REAL(long, "syscall", long, ...);
    long given[6];
    va_list more;
    va_start(more, number);
    for (int n = 0; n < 6; n++) given[n] = va_arg(more, long);
    va_end(more);
    if (number == SYS_io_submit && given[1] == 1)
        return submit(real, given[0], (struct iocb **)given[2]);
    return real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

#define FLUSH(name)                               \
    int name(int fd) {                            \
        REAL(int, #name, int);                    \
        return is_due_fd(fd, FLUSHES) ? failed() : real(fd); \
    }
FLUSH(fsync)
FLUSH(fdatasync)

#define CUT(name, offset)                                      \
    int name(int fd, offset size) {                            \
        REAL(int, #name, int, offset);                         \
        return is_due_fd(fd, BYTES) ? failed() : real(fd, size);      \
    }
CUT(ftruncate, off_t)
CUT(ftruncate64, off64_t)

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    return is_due(to, NAMES) ? failed() : real(from, to);
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    return is_due(path, NAMES) ? failed() : real(path);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    return is_due(path, NAMES) ? failed() : real(path, mode);
}

#define OPEN(name)                                                        \
    int name(const char *path, int flags, ...) {                          \
        REAL(int, #name, const char *, int, ...);                         \
        va_list more;                                                     \
        va_start(more, flags);                                            \
        mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;         \
        va_end(more);                                                     \
        if ((flags & O_CREAT) && is_due(path, NAMES)) return failed();           \
        return real(path, flags, mode);                                   \
    }
OPEN(open)
OPEN(open64)
