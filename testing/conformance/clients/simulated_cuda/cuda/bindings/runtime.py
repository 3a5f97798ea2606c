# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The CUDA runtime. As in cuda-python, a function returns a tuple: an error, then its results."""
import ctypes
import enum
import os

_LIBRARY = ctypes.CDLL(os.path.join(os.environ["SIM_GPU_LIBRARIES"], "libcudart.so.13"))
_LIBRARY.cudaGetErrorString.restype = ctypes.c_char_p

CUDA_IPC_HANDLE_SIZE = 64


class cudaError_t(enum.IntEnum):
    cudaSuccess = 0
    cudaErrorInvalidValue = 1
    cudaErrorMemoryAllocation = 2
    cudaErrorInvalidDevice = 101


class cudaMemcpyKind(enum.IntEnum):
    cudaMemcpyDefault = 4


class cudaDeviceAttr(enum.IntEnum):
    cudaDevAttrUnifiedAddressing = 41


class cudaIpcMemHandle_t:
    def __init__(self):
        self._bytes = ctypes.create_string_buffer(CUDA_IPC_HANDLE_SIZE)

    def getPtr(self):
        return ctypes.addressof(self._bytes)


def _address(of):
    if isinstance(of, bytes):
        return ctypes.cast(ctypes.c_char_p(of), ctypes.c_void_p)
    return ctypes.c_void_p(of if isinstance(of, int) else ctypes.addressof(of))


def _made(error, result):
    return cudaError_t(error), result.value


def cudaGetErrorString(error):
    return cudaError_t.cudaSuccess, _LIBRARY.cudaGetErrorString(int(error))


def cudaGetDevice():
    device = ctypes.c_int()
    return _made(_LIBRARY.cudaGetDevice(ctypes.byref(device)), device)


def cudaSetDevice(device):
    return (cudaError_t(_LIBRARY.cudaSetDevice(device)),)


def cudaDeviceGetAttribute(attribute, device):
    value = ctypes.c_int()
    return _made(_LIBRARY.cudaDeviceGetAttribute(ctypes.byref(value), int(attribute), device), value)


def cudaMalloc(count):
    at = ctypes.c_void_p()
    return _made(_LIBRARY.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(count)), at)


def cudaFree(at):
    return (cudaError_t(_LIBRARY.cudaFree(_address(at))),)


def cudaIpcGetMemHandle(at):
    handle = cudaIpcMemHandle_t()
    return cudaError_t(_LIBRARY.cudaIpcGetMemHandle(_address(handle.getPtr()), _address(at))), handle


def cudaMemcpyAsync(to, source, count, kind, stream):
    size = ctypes.c_size_t(int(count))
    return (cudaError_t(_LIBRARY.cudaMemcpyAsync(_address(to), _address(source), size, int(kind), _address(stream))),)


def cudaStreamCreate():
    stream = ctypes.c_void_p()
    return _made(_LIBRARY.cudaStreamCreate(ctypes.byref(stream)), stream)


def cudaStreamSynchronize(stream):
    return (cudaError_t(_LIBRARY.cudaStreamSynchronize(_address(stream))),)


def cudaStreamDestroy(stream):
    return (cudaError_t(_LIBRARY.cudaStreamDestroy(_address(stream))),)
