/* Copyright the Nereid authors.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for the CUDA runtime, which perf_analyzer wants to find even when it uses system shared memory only. Every
 * function says that there is no device. */
#define NONE(name) int name(void) { return 100; }
NONE(cudaFree) NONE(cudaIpcGetMemHandle) NONE(cudaMalloc) NONE(cudaMemcpy) NONE(cudaSetDevice)
const char *cudaGetErrorName(int code) { (void)code; return "cudaErrorNoDevice"; }
const char *cudaGetErrorString(int code) { (void)code; return "no device"; }
