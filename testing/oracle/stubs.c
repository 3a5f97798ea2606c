/* Copyright the Nereid authors.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Stubs of the CUDA and DCGM libraries that the core is linked with. Every function reports that no device exists. */
#define NONE(name) int name(void) { return 100; }
#ifdef CUDA
NONE(cudaDeviceCanAccessPeer) NONE(cudaDeviceEnablePeerAccess) NONE(cudaDeviceGetPCIBusId)
NONE(cudaDeviceGetStreamPriorityRange) NONE(cudaFree) NONE(cudaFreeHost) NONE(cudaGetDevice)
NONE(cudaGetDeviceProperties_v2) NONE(cudaHostAlloc) NONE(cudaLaunchHostFunc) NONE(cudaMalloc)
NONE(cudaMallocManaged) NONE(cudaMemGetInfo) NONE(cudaMemPrefetchAsync) NONE(cudaMemcpy) NONE(cudaMemcpyAsync)
NONE(cudaMemset) NONE(cudaSetDevice) NONE(cudaStreamCreate) NONE(cudaStreamDestroy) NONE(cudaStreamGetFlags)
NONE(cudaStreamSynchronize)
int cudaGetDeviceCount(int *count) { *count = 0; return 100; }
const char *cudaGetErrorString(int code) { (void)code; return "no device"; }
#else
NONE(dcgmConnect) NONE(dcgmDisconnect) NONE(dcgmFieldGroupCreate) NONE(dcgmGetAllDevices) NONE(dcgmGetDeviceAttributes)
NONE(dcgmGetLatestValuesForFields) NONE(dcgmGroupCreate) NONE(dcgmGroupDestroy) NONE(dcgmInit) NONE(dcgmShutdown)
NONE(dcgmStartEmbedded) NONE(dcgmStopEmbedded) NONE(dcgmUpdateAllFields) NONE(dcgmWatchFields)
#endif
