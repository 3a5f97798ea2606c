/* Copyright the Nereid authors.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A stub of the CUDA runtime, which perf_analyzer requires even when it only uses system shared memory. Every function
 * reports that no device exists. */
#define NONE(name) int name(void) { return 100; }
NONE(cudaFree) NONE(cudaIpcGetMemHandle) NONE(cudaMalloc) NONE(cudaMemcpy) NONE(cudaSetDevice)
const char *cudaGetErrorName(int code) { (void)code; return "cudaErrorNoDevice"; }
const char *cudaGetErrorString(int code) { (void)code; return "no device"; }
