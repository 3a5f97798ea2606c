/* Copyright the Nereid authors.
 * SPDX-License-Identifier: Apache-2.0
 *
 * An identity backend: the first output of a response is the first input of the request. Installed under the name of any
 * other backend, it lets the core read, complete and validate a configuration. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef void *Handle;
extern Handle TRITONBACKEND_ApiVersion(uint32_t *, uint32_t *);
extern Handle TRITONBACKEND_ResponseNew(Handle *, Handle);
extern Handle TRITONBACKEND_ResponseSend(Handle, uint32_t, Handle);
extern Handle TRITONBACKEND_ResponseOutput(Handle, Handle *, const char *, int, const int64_t *, uint32_t);
extern Handle TRITONBACKEND_OutputBuffer(Handle, void **, uint64_t, int *, int64_t *);
extern Handle TRITONBACKEND_RequestInputByIndex(Handle, uint32_t, Handle *);
extern Handle TRITONBACKEND_RequestOutputName(Handle, uint32_t, const char **);
extern Handle TRITONBACKEND_InputProperties(
    Handle, const char **, int *, const int64_t **, uint32_t *, uint64_t *, uint32_t *);
extern Handle TRITONBACKEND_InputBuffer(Handle, uint32_t, const void **, uint64_t *, int *, int64_t *);
extern Handle TRITONBACKEND_RequestRelease(Handle, uint32_t);
extern Handle TRITONBACKEND_ModelInstanceReportStatistics(
    Handle, Handle, int, uint64_t, uint64_t, uint64_t, uint64_t);
extern Handle TRITONBACKEND_ModelInstanceReportBatchStatistics(
    Handle, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

Handle TRITONBACKEND_ModelInstanceExecute(Handle instance, Handle *requests, uint32_t count) {
    for (uint32_t r = 0; r < count; r++) {
        Handle input, response, output;
        const char *name, *out;
        int type, memory = 0;
        const int64_t *shape;
        uint32_t rank, buffers;
        uint64_t bytes, size;
        int64_t device = 0;
        const void *from;
        void *to;
        TRITONBACKEND_RequestInputByIndex(requests[r], 0, &input);
        TRITONBACKEND_InputProperties(input, &name, &type, &shape, &rank, &bytes, &buffers);
        TRITONBACKEND_RequestOutputName(requests[r], 0, &out);
        TRITONBACKEND_ResponseNew(&response, requests[r]);
        TRITONBACKEND_ResponseOutput(response, &output, out, type, shape, rank);
        TRITONBACKEND_OutputBuffer(output, &to, bytes, &memory, &device);
        for (uint32_t b = 0; b < buffers; b++) {
            TRITONBACKEND_InputBuffer(input, b, &from, &size, &memory, &device);
            memcpy(to, from, size);
            to = (char *)to + size;
        }
        TRITONBACKEND_ResponseSend(response, 1, NULL);
        TRITONBACKEND_ModelInstanceReportStatistics(instance, requests[r], 1, 1, 2, 3, 4);
        TRITONBACKEND_RequestRelease(requests[r], 1);
    }
    TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, count, 1, 2, 3, 4);
    return NULL;
}
