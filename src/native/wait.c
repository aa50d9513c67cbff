/* Waiting by looking: who sleeps is woken late, and finds that the processor has forgotten what it
 * was about. That costs more than a moment of looking does. */
#include "native.h"

#ifndef _WIN32

#include <sched.h>
#include <time.h>

/* So long we keep the processor to ourselves; then others may run between two looks, since what we
 * wait for may need it: the kernel's own thread that flushes a disk, or who holds a lock. */
enum { ALONE_NS = 22 * 1000, PAUSES = 8 };

/* Who was away for so long between two looks has had to share the processor. */
enum { AWAY_NS = 100 * 1000 };

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void pause_a_moment(void)
{
    for (int n = 0; n < PAUSES; n++) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ __volatile__("yield");
#endif
    }
}

bool look_for(bool (*is_there)(void *), void *what, int64_t ns_max, bool *was_away)
{
    int64_t began = now_ns(), before = 0;
    *was_away = false;
    for (int64_t passed = 0; passed < ns_max; passed = now_ns() - began) {
        *was_away |= passed - before > AWAY_NS;
        before = passed;
        if (is_there(what))
            return true;
        if (passed < ALONE_NS)
            pause_a_moment();
        else
            sched_yield();
    }
    return false;
}

#endif
