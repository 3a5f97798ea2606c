# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""What Triton's client calls of cuda-python, over the simulated driver in the folder SIM_GPU_LIBRARIES. NVIDIA's own package has the CUDA
runtime inside, which does not run without NVIDIA's driver."""
