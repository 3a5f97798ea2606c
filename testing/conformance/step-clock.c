/* Copyright the Nereid authors.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Moves the wall clock of one process, for ChaosTest. Preloaded, it adds the seconds in the file that NEREID_STEP_CLOCK
 * names, eight bytes in the machine's order, to every reading of the real-time clock. The monotonic clock stays.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t none = 0;
static volatile int64_t *offset = &none;
static int (*real_clock)(clockid_t, struct timespec *);

__attribute__((constructor)) static void map_offset(void) {
    real_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("NEREID_STEP_CLOCK");
    int fd = path == NULL ? -1 : open(path, O_RDONLY);
    if (fd >= 0) {
        void *memory = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
        if (memory != MAP_FAILED) offset = memory;
        close(fd);
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (real_clock == NULL) real_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real_clock(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *offset;
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec precise;
    int result = clock_gettime(CLOCK_REALTIME, &precise);
    if (result == 0) {
        now->tv_sec = precise.tv_sec;
        now->tv_usec = precise.tv_nsec / 1000;
    }
    return result;
}

time_t time(time_t *now) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (now != NULL) *now = precise.tv_sec;
    return precise.tv_sec;
}
