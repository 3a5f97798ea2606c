// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
//
// A simulated libcuda.so.1 over memory of the host: two devices, faults on demand.
//   SIM_GPU_COUNT   number of devices, 0 to 2 (default 2)
//   SIM_GPU_MIG     if set, the second device is a part of a GPU
//   SIM_GPU_FAULTS  a file that is read at each call; lines DEVICE FAULT with lost, ecc or oom, DEVICE used BYTES, or DEVICE slow,
//                   with which a copy does not end before the line is gone
// The memory of a device is a file without a name, which another process opens through /proc by what a handle has.
#define _GNU_SOURCE
#include "simulated.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

sim_device sim_devices[] = {
    {"Simulated GPU 24G", 8, 6, (size_t)24 << 30, {0x11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 0, 61500, 300000, 37},
    {"Simulated GPU 8G", 5, 2, (size_t)8 << 30, {0x22, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 0, 20250, 150000, 4},
};

#define MAX_BLOCKS 1024
// The descriptor is that of an own block of a device, else -1. A block of another process counts how often it was opened.
static struct block { void *at; size_t bytes; int device, file, opened; unsigned long identity; } blocks[MAX_BLOCKS];

// What the 64 bytes of a handle have.
struct handle { char mark[8]; int process, file, device; unsigned long identity; size_t bytes; };
static const char MARK[8] = "sim-ipc";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int sim_machine(void) {
    const char *count = getenv("SIM_GPU_COUNT");
    int n = count ? atoi(count) : 2;
    if (getenv("SIM_GPU_MIG")) {
        sim_devices[1].mig = 1;
        sim_devices[1].major = 9;
        sim_devices[1].minor = 0;
    }
    return n < 0 ? 0 : n > 2 ? 2 : n;
}

static int by_uuid(const char *text) {
    char full[64];
    for (int i = 0; i < sim_machine(); i++) {
        const unsigned char *u = sim_devices[i].uuid;
        snprintf(full, sizeof full, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", sim_devices[i].mig ? "MIG" : "GPU",
                 u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
        if (strncmp(full, text, strlen(text)) == 0) {
            return i;
        }
    }
    return -1;
}

// The first entry that names no device ends the list, as the real driver has it.
int sim_visible(int *physical) {
    int all = sim_machine(), n = 0;
    const char *set = getenv("CUDA_VISIBLE_DEVICES");
    if (!set) {
        for (; n < all; n++) {
            physical[n] = n;
        }
        return n;
    }
    char text[256];
    snprintf(text, sizeof text, "%s", set);
    char *rest = NULL;
    for (char *one = strtok_r(text, ",", &rest); one && n < all; one = strtok_r(NULL, ",", &rest)) {
        int device = strncmp(one, "GPU-", 4) == 0 || strncmp(one, "MIG-", 4) == 0 ? by_uuid(one) : atoi(one);
        if (device < 0 || device >= all) {
            break;
        }
        physical[n++] = device;
    }
    return n;
}

// Reads the control file; returns the faults of the device, and its further memory in use.
static int control(int physical, size_t *used) {
    const char *name = getenv("SIM_GPU_FAULTS");
    FILE *file = name ? fopen(name, "r") : NULL;
    int faults = 0, device;
    char what[16];
    unsigned long long bytes;
    char line[128];
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%d %15s %llu", &device, what, &bytes) < 2 || device != physical) {
            continue;
        }
        faults |= !strcmp(what, "lost") ? SIM_LOST : !strcmp(what, "ecc") ? SIM_ECC : !strcmp(what, "oom") ? SIM_OUT_OF_MEMORY
                  : !strcmp(what, "slow") ? SIM_SLOW : 0;
        if (!strcmp(what, "used") && used) {
            *used += bytes;
        }
    }
    if (file) {
        fclose(file);
    }
    return faults;
}

int sim_faults(int physical) { return control(physical, NULL); }

size_t sim_used(int physical) {
    size_t used = (size_t)100 << 20; // the driver's own
    control(physical, &used);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_BLOCKS; i++) {
        used += blocks[i].at && blocks[i].device == physical && !blocks[i].opened ? blocks[i].bytes : 0;
    }
    pthread_mutex_unlock(&lock);
    return used;
}

static unsigned long identity(int file) {
    struct stat status;
    return fstat(file, &status) ? 0 : status.st_ino;
}

static void *map(int file, size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return at == MAP_FAILED ? NULL : at;
}

// Takes a free block; null without one. The lock is held.
static struct block *take(void *at, size_t bytes, int device, int file, int opened, unsigned long id) {
    for (int i = 0; i < MAX_BLOCKS && at; i++) {
        if (!blocks[i].at) {
            blocks[i] = (struct block){at, bytes, device, file, opened, id};
            return &blocks[i];
        }
    }
    return NULL;
}

void *sim_allocate(int physical, size_t bytes) {
    if (physical >= 0 && sim_used(physical) + bytes > sim_devices[physical].total) {
        return NULL;
    }
    int file = physical < 0 ? -1 : memfd_create("simulated-gpu", MFD_CLOEXEC);
    void *at = physical < 0 ? malloc(bytes) : file < 0 || ftruncate(file, (off_t)bytes) ? NULL : map(file, bytes);
    pthread_mutex_lock(&lock);
    struct block *block = take(at, bytes, physical, file, 0, file < 0 ? 0 : identity(file));
    pthread_mutex_unlock(&lock);
    return block ? at : NULL;
}

static int find(const void *address) {
    for (int i = 0; i < MAX_BLOCKS; i++) {
        const char *from = blocks[i].at;
        if (from && (const char *)address >= from && (const char *)address < from + blocks[i].bytes) {
            return i;
        }
    }
    return -1;
}

int sim_owner(const void *address) {
    pthread_mutex_lock(&lock);
    int i = find(address), device = i < 0 ? -2 : blocks[i].device;
    pthread_mutex_unlock(&lock);
    return device;
}

// Gives a block back. The lock is held.
static void drop(int i) {
    if (blocks[i].device < 0) {
        free(blocks[i].at);
    } else {
        munmap(blocks[i].at, blocks[i].bytes);
    }
    if (blocks[i].file >= 0) {
        close(blocks[i].file);
    }
    blocks[i].at = NULL;
    blocks[i].opened = 0;
}

int sim_free(void *address) {
    pthread_mutex_lock(&lock);
    int i = find(address), done = i >= 0 && !blocks[i].opened;
    if (done) {
        drop(i);
    }
    pthread_mutex_unlock(&lock);
    return done ? i : -1;
}

int sim_share(void *to, const void *address) {
    struct handle handle = {.process = getpid()};
    pthread_mutex_lock(&lock);
    int i = find(address), done = i >= 0 && blocks[i].file >= 0;
    if (done) {
        memcpy(handle.mark, MARK, sizeof MARK);
        handle.file = blocks[i].file;
        handle.device = blocks[i].device;
        handle.identity = blocks[i].identity;
        handle.bytes = blocks[i].bytes;
    }
    pthread_mutex_unlock(&lock);
    memset(to, 0, 64);
    memcpy(to, &handle, sizeof handle);
    return done ? 0 : 1;
}

int sim_open(void **at, const void *from, int physical) {
    struct handle handle;
    memcpy(&handle, from, sizeof handle);
    if (memcmp(handle.mark, MARK, sizeof MARK) || handle.process == getpid()) {
        return handle.process == getpid() ? 201 : 1;
    }
    if (handle.device != physical) {
        return 217;
    }
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/fd/%d", handle.process, handle.file);
    int file = open(name, O_RDWR | O_CLOEXEC);
    int error = file < 0 || identity(file) != handle.identity ? 400 : 0;
    pthread_mutex_lock(&lock);
    struct block *block = NULL;
    for (int i = 0; i < MAX_BLOCKS && !error && !block; i++) {
        if (blocks[i].at && blocks[i].opened && blocks[i].identity == handle.identity) {
            block = &blocks[i];
            block->opened++;
        }
    }
    if (!error && !block && !(block = take(map(file, handle.bytes), handle.bytes, physical, -1, 1, handle.identity))) {
        error = 2;
    }
    *at = block ? block->at : NULL;
    pthread_mutex_unlock(&lock);
    if (file >= 0) {
        close(file);
    }
    return error;
}

int sim_close(void *at) {
    pthread_mutex_lock(&lock);
    int i = find(at), opened = i >= 0 && blocks[i].at == at && blocks[i].opened;
    if (opened && --blocks[i].opened == 0) {
        drop(i);
    }
    pthread_mutex_unlock(&lock);
    return opened ? 0 : 1;
}

int cuMemGetAddressRange_v2(unsigned long long *base, size_t *bytes, unsigned long long address) {
    pthread_mutex_lock(&lock);
    int i = find((void *)address);
    if (i >= 0) {
        *base = (unsigned long long)blocks[i].at;
        *bytes = blocks[i].bytes;
    }
    pthread_mutex_unlock(&lock);
    return i >= 0 ? 0 : 1;
}

int cuInit(unsigned flags) { return flags ? 1 : sim_machine() ? 0 : 100; }

int cuDeviceGet(int *device, int ordinal) {
    int physical[2];
    if (ordinal < 0 || ordinal >= sim_visible(physical)) {
        return 101;
    }
    *device = ordinal;
    return 0;
}

int cuDeviceGetName(char *name, int length, int device) {
    int physical[2];
    sim_visible(physical);
    snprintf(name, length, "%s", sim_devices[physical[device]].name);
    return 0;
}

int cuDeviceGetUuid_v2(void *uuid, int device) {
    int physical[2];
    sim_visible(physical);
    memcpy(uuid, sim_devices[physical[device]].uuid, 16);
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    int physical[2];
    sim_visible(physical);
    *bytes = sim_devices[physical[device]].total;
    return 0;
}

// Kernels are the ones that are compiled in here: an image of the simulated NVRTC has the name of one.
static char bias_relu;

int cuModuleLoadData(void **module, const void *image) {
    *module = strncmp(image, "simulated bias_relu", 19) ? NULL : &bias_relu;
    return *module ? 0 : 200;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
    *function = module == &bias_relu && !strcmp(name, "bias_relu") ? module : NULL;
    return *function ? 0 : 500;
}

int cuModuleUnload(void *module) { return module == &bias_relu ? 0 : 400; }

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned across, unsigned down, unsigned deep, unsigned shared,
                   void *stream, void **arguments, void **extra) {
    (void)stream;
    if (function != &bias_relu || y != 1 || z != 1 || down != 1 || deep != 1 || shared || extra) {
        return 1;
    }
    float *data = *(float **)arguments[0], *bias = *(float **)arguments[1];
    int width = *(int *)arguments[2], count = *(int *)arguments[3];
    if (sim_owner(data) < 0 || sim_owner(bias) != sim_owner(data) || (size_t)x * across < (size_t)count) {
        return 700;
    }
    for (int i = 0; i < count; i++) {
        float value = data[i] + bias[i % width];
        data[i] = value > 0 ? value : 0;
    }
    return 0;
}
