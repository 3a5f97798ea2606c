// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** The place of a revision in the tables, there before its gate is and after. Thread-safe. */
final class GateSlot {
    final String namespace;
    final String revision;
    private volatile @Nullable RevisionGate gate;
    private List<Mirror> mirrors = List.of();

    GateSlot(String namespace, String revision) {
        this.namespace = namespace;
        this.revision = revision;
    }

    @Nullable RevisionGate gate() {
        return gate;
    }

    synchronized void gate(RevisionGate next) {
        next.mirrors(mirrors);
        gate = next;
    }

    synchronized void leave(RevisionGate old) {
        if (gate == old) {
            gate = null;
        }
    }

    synchronized void mirrors(List<Mirror> wanted) {
        mirrors = wanted;
        RevisionGate now = gate;
        if (now != null) {
            now.mirrors(wanted);
        }
    }
}
