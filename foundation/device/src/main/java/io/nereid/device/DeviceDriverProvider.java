// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.device;

/** How a plugin provides a driver; found by {@link java.util.ServiceLoader}. Stateless. */
public interface DeviceDriverProvider {
    /** The name of the driver, for messages. */
    String name();

    /**
     * Loads the driver's libraries and finds the devices. Blocks, for seconds on a machine with many devices.
     *
     * @throws io.nereid.base.ServingException UNAVAILABLE when there is no driver, or a library of it is missing, which
     *     the message names; FAILED_PRECONDITION when the driver does not work
     */
    DeviceDriver open();
}
