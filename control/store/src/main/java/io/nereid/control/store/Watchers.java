// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.store;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.core.ResourceStore;
import io.nereid.control.core.ResourceStore.Change;
import io.nereid.control.core.ResourceStore.Watch;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The latest changes, and who wants to hear of them. Guarded by the store's lock, but for the telling, on a thread of its own. */
final class Watchers {
    private static final Logger LOG = LoggerFactory.getLogger(Watchers.class);

    private final int most;
    private final ArrayDeque<Entry> history = new ArrayDeque<>();
    private final List<Watcher> watchers = new ArrayList<>();
    private final ExecutorService teller = Threads.single("nereid-watch");
    private long forgotten;

    /**
     * Nobody watches yet.
     *
     * @param most how many changes are remembered
     */
    Watchers(int most) {
        this.most = most;
    }

    /** Changes up to this version cannot be told any more. */
    void forget(long version) {
        forgotten = version;
    }

    /** The last version whose changes cannot be told. */
    long forgotten() {
        return forgotten;
    }

    /** Something has changed. */
    void changed(Entry entry) {
        history.addLast(entry);
        if (history.size() > most) {
            forgotten = history.removeFirst().version();
        }
        for (Watcher watcher : watchers) {
            if (watcher.wants(entry)) {
                tell(watcher, entry);
            }
        }
    }

    /**
     * Begins to tell.
     *
     * @param present what to tell of before anything else
     * @param from the version after which changes are told
     * @param now the last version there is
     */
    Watcher add(
            ResourceStore.Type type,
            @Nullable String namespace,
            Consumer<Change> listener,
            List<Entry> present,
            long from,
            long now) {
        if (from < forgotten || from > now) {
            throw ServingException.of(
                    ErrorCode.OUT_OF_RANGE,
                    from > now
                            ? "too large resource version: " + from + ", current: " + now
                            : "too old resource version: " + from + " (" + forgotten + ")",
                    "list the resources again and watch from the version of that list");
        }
        Watcher watcher = new Watcher(this, type, namespace, listener);
        for (Entry entry : present) {
            if (watcher.wants(entry)) {
                tell(watcher, entry);
            }
        }
        for (Entry entry : history) {
            if (entry.version() > from && watcher.wants(entry)) {
                tell(watcher, entry);
            }
        }
        watchers.add(watcher);
        return watcher;
    }

    private void tell(Watcher watcher, Entry entry) {
        teller.execute(() -> watcher.tell(entry));
    }

    void remove(Watcher watcher) {
        watchers.remove(watcher);
    }

    void close() {
        watchers.forEach(watcher -> watcher.closed = true);
        watchers.clear();
        teller.shutdown();
    }

    /** One listener. Thread-safe. */
    static final class Watcher implements Watch {
        private final Watchers owner;
        private final ResourceStore.Type type;
        private final @Nullable String namespace;
        private final Consumer<Change> listener;
        private volatile boolean closed;
        private @Nullable Consumer<Watcher> onClose;

        Watcher(Watchers owner, ResourceStore.Type type, @Nullable String namespace, Consumer<Change> listener) {
            this.owner = owner;
            this.type = type;
            this.namespace = namespace;
            this.listener = listener;
        }

        Watcher onClose(Consumer<Watcher> action) {
            onClose = action;
            return this;
        }

        boolean wants(Entry entry) {
            return entry.key().type().equals(type)
                    && (namespace == null || namespace.equals(entry.key().namespace()));
        }

        void tell(Entry entry) {
            if (closed) {
                return;
            }
            ObjectNode copy = entry.resource().deepCopy();
            try {
                listener.accept(new Change(entry.kind(), entry.version(), copy));
            } catch (RuntimeException e) {
                LOG.error("a watcher of {} failed at version {}; it goes on", type.plural(), entry.version(), e);
            }
        }

        @Override
        public void close() {
            closed = true;
            Consumer<Watcher> action = onClose;
            if (action != null) {
                action.accept(this);
            } else {
                owner.remove(this);
            }
        }
    }
}
