// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.base.Clock;
import io.nereid.control.core.Infrastructure;
import io.nereid.control.core.ResourceStore;

/** The loop: resources in, plans applied, status out. Thread-safe. */
public final class LocalPlane implements AutoCloseable {
    /** Watches nothing yet. */
    public LocalPlane(ResourceStore store, Infrastructure infrastructure, LocalSettings.Retries retries, Clock clock) {}

    /** Begins to watch. Everything in the store is planned and applied soon after. */
    public void start() {}

    /** Stops planning; what runs goes on until the infrastructure is closed. */
    @Override
    public void close() {}
}
