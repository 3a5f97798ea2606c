// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
//
// A process that shares memory of a device: share DEVICE BYTES prints the handle in hexadecimal digits. Then it reads lines:
// set OFFSET HEX writes to the memory, get OFFSET COUNT prints what it has. It ends with its input.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { unsigned char bytes[64]; } handle;
int cudaSetDevice(int device);
int cudaMalloc(void **at, size_t bytes);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaIpcGetMemHandle(handle *handle, void *at);

static int print(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        printf("%02x", bytes[i]);
    }
    return printf("\n") < 0 || fflush(stdout);
}

int main(int count, char **arguments) {
    static unsigned char buffer[1 << 16];
    static char digits[sizeof buffer * 2 + 1], line[sizeof digits + 32];
    char *memory;
    handle own;
    if (count != 3 || cudaSetDevice(atoi(arguments[1])) || cudaMalloc((void **)&memory, strtoul(arguments[2], NULL, 10)) ||
        cudaIpcGetMemHandle(&own, memory)) {
        return 1;
    }
    print(own.bytes, sizeof own.bytes);
    while (fgets(line, sizeof line, stdin)) {
        size_t offset, bytes;
        if (sscanf(line, "set %zu %131072s", &offset, digits) == 2) {
            bytes = strlen(digits) / 2;
            for (size_t i = 0; i < bytes; i++) {
                sscanf(digits + 2 * i, "%2hhx", &buffer[i]);
            }
            if (cudaMemcpy(memory + offset, buffer, bytes, 1) || print(NULL, 0)) {
                return 1;
            }
        } else if (sscanf(line, "get %zu %zu", &offset, &bytes) == 2 && bytes <= sizeof buffer) {
            if (cudaMemcpy(buffer, memory + offset, bytes, 2) || print(buffer, bytes)) {
                return 1;
            }
        } else {
            return 1;
        }
    }
    return 0;
}
