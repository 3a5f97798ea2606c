// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
//
// A simulated libcublas.so.13: the product of two matrices of 32-bit numbers, in memory of one simulated device.
#include "simulated.h"
#include <stdlib.h>

int cublasCreate_v2(void **handle) { return (*handle = malloc(1)) ? 0 : 3; }
int cublasDestroy_v2(void *handle) { return free(handle), handle ? 0 : 1; }
int cublasSetStream_v2(void *handle, void *stream) { return (void)stream, handle ? 0 : 1; }

// c = alpha * a * b + beta * c for matrices by columns that are not transposed.
int cublasSgemm_v2(void *handle, int of_a, int of_b, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b, int ldb,
                   const float *beta, float *c, int ldc) {
    if (!handle || of_a || of_b || m < 0 || n < 0 || k < 0 || lda < m || ldb < k || ldc < m) {
        return 7;
    }
    if (sim_owner(a) < 0 || sim_owner(b) != sim_owner(a) || sim_owner(c) != sim_owner(a)) {
        return 14;
    }
    for (int j = 0; j < n; j++) {
        for (int i = 0; i < m; i++) {
            c[(size_t)j * ldc + i] *= *beta;
        }
        for (int l = 0; l < k; l++) {
            float factor = *alpha * b[(size_t)j * ldb + l];
            for (int i = 0; i < m; i++) {
                c[(size_t)j * ldc + i] += factor * a[(size_t)l * lda + i];
            }
        }
    }
    return 0;
}
