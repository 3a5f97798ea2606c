// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.spi;

import java.net.URI;

/**
 * Decides which hosts the connections of a provider may reach, so that a request cannot make the server call services
 * that only the server can reach. A provider calls it before each connection, with the targets of redirects too.
 * Thread-safe. It may block, since it resolves names.
 */
@FunctionalInterface
public interface HostCheck {
    /** Permits every host. */
    HostCheck ANY = target -> {};

    /**
     * Checks a target and the addresses of its host.
     *
     * @throws io.nereid.base.ServingException PERMISSION_DENIED when it may not be reached
     */
    void check(URI target);
}
