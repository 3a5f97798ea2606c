// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
//
// A simulated libnvidia-ml.so.1. Numbers of errors are those of NVML 13. CUDA_VISIBLE_DEVICES does not matter to it.
#include "simulated.h"
#include <stdio.h>
#include <string.h>

typedef sim_device *handle;

// A whole GPU that the part belongs to.
static sim_device parent = {"Simulated GPU 80G", 9, 0, (size_t)80 << 30, {0x33}, 0, 90000, 400000, 50};

static int number(handle device) { return (int)(device - sim_devices); }

static int fault(handle device) { return device != &parent && sim_faults(number(device)) & SIM_LOST ? 15 : 0; }

static void text(handle device, char *to, unsigned length) {
    const unsigned char *u = device->uuid;
    snprintf(to, length, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", device->mig ? "MIG" : "GPU", u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

int nvmlInit_v2(void) { return sim_machine() ? 0 : 9; }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *to, unsigned length) { return snprintf(to, length, "590.00.01") < 0; }

int nvmlDeviceGetHandleByUUID(const char *uuid, handle *device) {
    char own[96];
    for (int i = 0; i < sim_machine(); i++) {
        text(&sim_devices[i], own, sizeof own);
        if (strcmp(own, uuid) == 0) {
            *device = &sim_devices[i];
            return 0;
        }
    }
    return 6;
}

int nvmlDeviceGetUUID(handle device, char *to, unsigned length) { return text(device, to, length), 0; }
int nvmlDeviceIsMigDeviceHandle(handle device, unsigned *is) { return *is = device->mig, 0; }
int nvmlDeviceGetGpuInstanceId(handle device, unsigned *id) { return *id = 3, device->mig ? 0 : 3; }
int nvmlDeviceGetComputeInstanceId(handle device, unsigned *id) { return *id = 0, device->mig ? 0 : 3; }

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle mig, handle *device) { return *device = &parent, mig->mig ? 0 : 3; }

int nvmlDeviceGetMemoryInfo(handle device, unsigned long long *totalFreeUsed) {
    totalFreeUsed[0] = device->total;
    totalFreeUsed[2] = sim_used(number(device));
    totalFreeUsed[1] = totalFreeUsed[0] - totalFreeUsed[2];
    return fault(device);
}

int nvmlDeviceGetUtilizationRates(handle device, unsigned *gpuAndMemory) {
    gpuAndMemory[0] = device->busy;
    gpuAndMemory[1] = device->busy / 2;
    return device->mig ? 3 : fault(device);
}

int nvmlDeviceGetPowerUsage(handle device, unsigned *milliwatts) {
    *milliwatts = device->power;
    return device->mig ? 3 : fault(device);
}

int nvmlDeviceGetEnforcedPowerLimit(handle device, unsigned *milliwatts) {
    *milliwatts = device->limit;
    return device->mig ? 3 : fault(device);
}

// 1.5 J more at each call, so that a counter can be seen to rise.
int nvmlDeviceGetTotalEnergyConsumption(handle device, unsigned long long *millijoules) {
    static unsigned long long taken[2] = {7000000, 9000000};
    if (device->mig) {
        return 3;
    }
    *millijoules = taken[number(device)] += 1500;
    return fault(device);
}

int nvmlDeviceGetTotalEccErrors(handle device, int type, int counter, unsigned long long *count) {
    *count = type == 1 && counter == 0 && sim_faults(number(device)) & SIM_ECC ? 1 : 0;
    return number(device) == 1 ? 3 : fault(device); // the second device has no ECC
}

const char *nvmlErrorString(int error) {
    return error == 15 ? "GPU is lost" : error == 9 ? "Driver Not Loaded" : error == 6 ? "Not Found" : error == 3 ? "Not Supported" : "Unknown Error";
}
