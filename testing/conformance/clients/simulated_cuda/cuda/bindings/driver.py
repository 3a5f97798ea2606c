# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The driver. As in cuda-python, a function returns a tuple: an error, then its results."""
import ctypes
import enum
import os

_LIBRARY = ctypes.CDLL(os.path.join(os.environ["SIM_GPU_LIBRARIES"], "libcuda.so.1"))


class CUresult(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_DEVICE = 101


def cuDeviceGet(ordinal):
    device = ctypes.c_int()
    return CUresult(_LIBRARY.cuDeviceGet(ctypes.byref(device), ordinal)), device.value


def cuDevicePrimaryCtxGetState(device):
    return CUresult.CUDA_SUCCESS, 0, 1


def cuGetErrorString(error):
    return CUresult.CUDA_SUCCESS, CUresult(error).name.encode()
