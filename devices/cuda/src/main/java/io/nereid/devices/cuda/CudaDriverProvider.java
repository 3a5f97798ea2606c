// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.devices.cuda;

import io.nereid.device.DeviceDriver;
import io.nereid.device.DeviceDriverProvider;

/** Opens {@link CudaDriver}. Stateless. */
public final class CudaDriverProvider implements DeviceDriverProvider {
    @Override
    public String name() {
        return "cuda";
    }

    @Override
    public DeviceDriver open() {
        CudaLibraries.load();
        return CudaDriver.open();
    }
}
