// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
//
// A simulated libcuda.so.1 over memory of the host: two devices, faults on demand.
//   SIM_GPU_COUNT   number of devices, 0 to 2 (default 2)
//   SIM_GPU_MIG     if set, the second device is a part of a GPU
//   SIM_GPU_FAULTS  a file that is read at each call; lines DEVICE FAULT with lost, ecc or oom, or DEVICE used BYTES
#include "simulated.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sim_device sim_devices[] = {
    {"Simulated GPU 24G", 8, 6, (size_t)24 << 30, {0x11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 0, 61500, 300000, 37},
    {"Simulated GPU 8G", 5, 2, (size_t)8 << 30, {0x22, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 0, 20250, 150000, 4},
};

#define MAX_BLOCKS 1024
static struct { void *at; size_t bytes; int device; } blocks[MAX_BLOCKS];
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
        faults |= !strcmp(what, "lost") ? SIM_LOST : !strcmp(what, "ecc") ? SIM_ECC : !strcmp(what, "oom") ? SIM_OUT_OF_MEMORY : 0;
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
        used += blocks[i].at && blocks[i].device == physical ? blocks[i].bytes : 0;
    }
    pthread_mutex_unlock(&lock);
    return used;
}

void *sim_allocate(int physical, size_t bytes) {
    void *at = NULL;
    if (physical >= 0 && sim_used(physical) + bytes > sim_devices[physical].total) {
        return NULL;
    }
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_BLOCKS && !at; i++) {
        if (!blocks[i].at && (at = malloc(bytes))) {
            blocks[i].at = at;
            blocks[i].bytes = bytes;
            blocks[i].device = physical;
        }
    }
    pthread_mutex_unlock(&lock);
    return at;
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

int sim_free(void *address) {
    pthread_mutex_lock(&lock);
    int i = find(address);
    if (i >= 0) {
        free(blocks[i].at);
        blocks[i].at = NULL;
    }
    pthread_mutex_unlock(&lock);
    return i;
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
