// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

/** Is notified of requests that wait for a replica. */
@FunctionalInterface
public interface WakeListener {
    /**
     * Called when a request waits for a revision without replicas: once until it has some, and again when a later
     * request arrives after all waiting ones have left. Must return at once.
     */
    void wake(String namespace, String revision);
}
