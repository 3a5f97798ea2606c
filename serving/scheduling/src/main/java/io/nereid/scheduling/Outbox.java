// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What was decided under a lock and is done after it. Confined to one thread. */
final class Outbox {
    /** Whether a run may be among it. */
    final boolean mayRun;

    private @Nullable List<Runnable> todo;

    Outbox() {
        this(false);
    }

    Outbox(boolean mayRun) {
        this.mayRun = mayRun;
    }

    void add(Runnable action) {
        if (todo == null) {
            todo = new ArrayList<>(2);
        }
        todo.add(action);
    }

    /** Does it, in order. */
    void send() {
        List<Runnable> now = todo;
        if (now != null) {
            todo = null;
            now.forEach(Runnable::run);
        }
    }
}
