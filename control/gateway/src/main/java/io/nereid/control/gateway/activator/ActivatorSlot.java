// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The entry of a revision in the routing tables, which exists before its activator is opened and after it is closed.
 * Thread-safe.
 */
public final class ActivatorSlot {
    final String namespace;
    public final String revision;
    private volatile @Nullable RevisionActivator activator;

    @GuardedBy("this") private List<MirrorTarget> mirrors = List.of();

    public ActivatorSlot(String namespace, String revision) {
        this.namespace = namespace;
        this.revision = revision;
    }

    public @Nullable RevisionActivator activator() {
        return activator;
    }

    public synchronized void activator(RevisionActivator next) {
        next.mirrors(mirrors);
        activator = next;
    }

    public synchronized void leave(RevisionActivator old) {
        if (activator == old) {
            activator = null;
        }
    }

    public synchronized void mirrors(List<MirrorTarget> targets) {
        mirrors = targets;
        RevisionActivator now = activator;
        if (now != null) {
            now.mirrors(targets);
        }
    }
}
