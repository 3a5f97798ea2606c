// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.store;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.api.store.ResourceStore.Change;
import io.nereid.control.api.store.ResourceStore.Watch;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The latest changes and the running watches, like the watch cache of Kubernetes' API server. Guarded by the store's
 * lock, except for the calls of listeners, which run in order on a thread of their own so that a slow listener does not
 * block the store.
 */
final class WatchCache {
    private static final Logger LOG = LoggerFactory.getLogger(WatchCache.class);

    private final int most;
    private final ArrayDeque<ChangeRecord> history = new ArrayDeque<>();
    private final List<Watcher> watchers = new ArrayList<>();
    private final ExecutorService notifier = Threads.single("nereid-watch");
    private long forgotten;

    /**
     * Starts without watches.
     *
     * @param most the number of changes to keep
     */
    WatchCache(int most) {
        this.most = most;
    }

    /** Declares that changes up to this version are not available. */
    void forget(long version) {
        forgotten = version;
    }

    /** The last version whose changes are no longer available. */
    long forgotten() {
        return forgotten;
    }

    /** Records a change and delivers it to the matching watches. */
    void changed(ChangeRecord entry) {
        history.addLast(entry);
        if (history.size() > most) {
            forgotten = history.removeFirst().version();
        }
        for (Watcher watcher : watchers) {
            if (watcher.matches(entry)) {
                deliver(watcher, entry);
            }
        }
    }

    /**
     * Starts a watch.
     *
     * @param present the changes to deliver first
     * @param from the version after which changes are delivered
     * @param now the last version of the store
     * @throws ServingException OUT_OF_RANGE when changes since {@code from} are no longer available, or it is in the
     *     future
     */
    Watcher add(
            ResourceStore.Type type,
            @Nullable String namespace,
            Consumer<Change> listener,
            List<ChangeRecord> present,
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
        for (ChangeRecord entry : present) {
            if (watcher.matches(entry)) {
                deliver(watcher, entry);
            }
        }
        for (ChangeRecord entry : history) {
            if (entry.version() > from && watcher.matches(entry)) {
                deliver(watcher, entry);
            }
        }
        watchers.add(watcher);
        return watcher;
    }

    private void deliver(Watcher watcher, ChangeRecord entry) {
        notifier.execute(() -> watcher.deliver(entry));
    }

    void remove(Watcher watcher) {
        watchers.remove(watcher);
    }

    void close() {
        watchers.forEach(watcher -> watcher.closed = true);
        watchers.clear();
        notifier.shutdown();
    }

    /** One watch. Thread-safe. */
    static final class Watcher implements Watch {
        private final WatchCache owner;
        private final ResourceStore.Type type;
        private final @Nullable String namespace;
        private final Consumer<Change> listener;
        private volatile boolean closed;
        private @Nullable Consumer<Watcher> onClose;

        Watcher(WatchCache owner, ResourceStore.Type type, @Nullable String namespace, Consumer<Change> listener) {
            this.owner = owner;
            this.type = type;
            this.namespace = namespace;
            this.listener = listener;
        }

        Watcher onClose(Consumer<Watcher> action) {
            onClose = action;
            return this;
        }

        boolean matches(ChangeRecord entry) {
            return entry.key().type().equals(type)
                    && (namespace == null || namespace.equals(entry.key().namespace()));
        }

        void deliver(ChangeRecord entry) {
            if (closed) {
                return;
            }
            ObjectNode copy = entry.resource().deepCopy(); // the listener owns what it receives
            try {
                listener.accept(new Change(entry.kind(), entry.version(), copy));
            } catch (RuntimeException e) {
                LOG.error("a watch of {} failed at version {}; it continues", type.plural(), entry.version(), e);
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
