// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
//
// A simulated libcudart.so.13. Numbers of errors and attributes are those of CUDA 13.
#include "simulated.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __thread int current;
static __thread int last;

static int done(int error) {
    if (error) {
        last = error;
    }
    return error;
}

static int fault(int physical) {
    int faults = physical < 0 ? 0 : sim_faults(physical);
    return faults & SIM_LOST ? 719 : faults & SIM_ECC ? 214 : 0;
}

static int physical(int ordinal) {
    int devices[2];
    return ordinal >= 0 && ordinal < sim_visible(devices) ? devices[ordinal] : -2;
}

int cudaDriverGetVersion(int *version) { return *version = getenv("SIM_GPU_OLD_DRIVER") ? 11040 : 13010, 0; }
int cudaRuntimeGetVersion(int *version) { return *version = 13010, 0; }
int cudaGetLastError(void) { int error = last; last = 0; return error; }

int cudaGetDeviceCount(int *count) {
    int devices[2];
    *count = sim_visible(devices);
    return done(getenv("SIM_GPU_OLD_DRIVER") ? 35 : *count ? 0 : 100);
}

int cudaDeviceGetAttribute(int *value, int attribute, int ordinal) {
    int device = physical(ordinal);
    if (device < 0) {
        return done(101);
    }
    // the compute capability, and whether a device has the addresses of the host
    *value = attribute == 75 ? sim_devices[device].major : attribute == 76 ? sim_devices[device].minor : attribute == 41;
    return done(attribute == 75 || attribute == 76 || attribute == 41 ? 0 : 1);
}

int cudaGetDevice(int *ordinal) { return *ordinal = current, 0; }

int cudaSetDevice(int ordinal) {
    int device = physical(ordinal);
    if (device < 0) {
        return done(101);
    }
    current = ordinal;
    return done(fault(device));
}

int cudaMalloc(void **at, size_t bytes) {
    int device = physical(current), error = device < 0 ? 100 : fault(device);
    if (error) {
        return done(error);
    }
    *at = sim_faults(device) & SIM_OUT_OF_MEMORY ? NULL : sim_allocate(device, bytes);
    return done(*at ? 0 : 2);
}

int cudaFree(void *at) {
    int error = fault(physical(current));
    return done(error ? error : at && sim_free(at) < 0 ? 1 : 0);
}

int cudaHostAlloc(void **at, size_t bytes, unsigned flags) {
    (void)flags;
    *at = sim_allocate(-1, bytes);
    return done(*at ? 0 : 2);
}

int cudaFreeHost(void *at) { return done(at && sim_free(at) < 0 ? 1 : 0); }

int cudaMemcpy(void *to, const void *from, size_t bytes, int kind) {
    int devices[] = {sim_owner(to), sim_owner(from)}, error = 0;
    for (int i = 0; i < 2 && !error; i++) {
        error = fault(devices[i]);
        while (!error && devices[i] >= 0 && sim_faults(devices[i]) & SIM_SLOW) {
            usleep(2000);
        }
    }
    int known = kind == 1 || kind == 2 || kind == 4; // to a device, from a device, by the addresses
    if (!error && known) {
        memcpy(to, from, bytes);
    }
    return done(error ? error : known ? 0 : 21);
}

// Everything has been done when a call returns, so there is nothing to wait for.
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream) {
    (void)stream;
    return cudaMemcpy(to, from, bytes, kind);
}
int cudaStreamCreate(void **stream) { return *stream = stream, 0; }
int cudaStreamDestroy(void *stream) { return stream ? 0 : done(400); }
int cudaStreamSynchronize(void *stream) { return (void)stream, done(fault(physical(current))); }

typedef struct { char bytes[64]; } memory_handle;

int cudaIpcGetMemHandle(memory_handle *handle, void *at) { return done(sim_share(handle, at)); }

int cudaIpcOpenMemHandle(void **at, memory_handle handle, unsigned flags) {
    int device = physical(current), error = fault(device);
    return done(error ? error : flags == 1 ? sim_open(at, &handle, device) : 1);
}

int cudaIpcCloseMemHandle(void *at) {
    int error = fault(physical(current));
    return done(error ? error : sim_close(at));
}

const char *cudaGetErrorName(int error) {
    return error == 2     ? "cudaErrorMemoryAllocation"
           : error == 35  ? "cudaErrorInsufficientDriver"
           : error == 100 ? "cudaErrorNoDevice"
           : error == 201 ? "cudaErrorDeviceUninitialized"
           : error == 214 ? "cudaErrorECCUncorrectable"
           : error == 217 ? "cudaErrorPeerAccessUnsupported"
           : error == 400 ? "cudaErrorInvalidResourceHandle"
           : error == 719 ? "cudaErrorLaunchFailure"
                          : "cudaErrorInvalidValue";
}

const char *cudaGetErrorString(int error) {
    return error == 2     ? "out of memory"
           : error == 35  ? "CUDA driver version is insufficient for CUDA runtime version"
           : error == 100 ? "no CUDA-capable device is detected"
           : error == 201 ? "invalid device context"
           : error == 214 ? "uncorrectable ECC error encountered"
           : error == 217 ? "peer access is not supported between these two devices"
           : error == 400 ? "invalid resource handle"
           : error == 719 ? "unspecified launch failure"
                          : "invalid argument";
}
