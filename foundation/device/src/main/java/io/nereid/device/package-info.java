// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * GPUs and their memory. A plugin implements {@link io.nereid.device.DeviceDriver}; {@link io.nereid.device.Devices} keeps
 * the account, admits loads, and turns faults into states. A server without a GPU loads none of these classes.
 */
@NullMarked
package io.nereid.device;

import org.jspecify.annotations.NullMarked;
