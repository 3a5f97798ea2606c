// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
//
// The state of the simulated driver, which libcuda has and the other two libraries use.
#ifndef NEREID_SIMULATED_H
#define NEREID_SIMULATED_H
#include <stddef.h>

#define SIM_LOST 1
#define SIM_ECC 2
#define SIM_OUT_OF_MEMORY 4
#define SIM_SLOW 8

typedef struct {
    const char *name;
    int major, minor;
    size_t total;
    unsigned char uuid[16];
    int mig; // whether it is a part of a GPU
    unsigned power, limit; // milliwatts
    unsigned busy;         // percent
} sim_device;

// The devices of the machine, and those that CUDA_VISIBLE_DEVICES leaves, by their numbers on the machine.
extern sim_device sim_devices[];
int sim_machine(void);
int sim_visible(int *physical);

// The bits of the faults of a device of the machine, and the bytes in use on it.
int sim_faults(int physical);
size_t sim_used(int physical);

// Allocates on a device of the machine, or on the host for -1; null without memory.
void *sim_allocate(int physical, size_t bytes);
// The device that has an address, -1 for the host, -2 for an address that was not allocated.
int sim_owner(const void *address);
int sim_free(void *address);

// Shares an allocation of a device with other processes by 64 bytes, which another process opens on the same device. They return
// numbers of errors of CUDA.
int sim_share(void *handle, const void *address);
int sim_open(void **at, const void *handle, int physical);
int sim_close(void *at);
#endif
