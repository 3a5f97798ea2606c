// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** GPUs of NVIDIA by the CUDA runtime, the CUDA driver and NVML, through JavaCPP's presets. */
@NullMarked
package io.nereid.devices.cuda;

import org.jspecify.annotations.NullMarked;
