// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The entry of a revision in the routing tables, which exists before its activator is opened and after it is closed.
 * Thread-safe.
 */
final class ActivatorSlot {
    final String namespace;
    final String revision;
    private volatile @Nullable RevisionActivator activator;

    @GuardedBy("this") private List<MirrorTarget> mirrors = List.of();

    ActivatorSlot(String namespace, String revision) {
        this.namespace = namespace;
        this.revision = revision;
    }

    @Nullable RevisionActivator activator() {
        return activator;
    }

    synchronized void activator(RevisionActivator next) {
        next.mirrors(mirrors);
        activator = next;
    }

    synchronized void leave(RevisionActivator old) {
        if (activator == old) {
            activator = null;
        }
    }

    synchronized void mirrors(List<MirrorTarget> wanted) {
        mirrors = wanted;
        RevisionActivator now = activator;
        if (now != null) {
            now.mirrors(wanted);
        }
    }
}
