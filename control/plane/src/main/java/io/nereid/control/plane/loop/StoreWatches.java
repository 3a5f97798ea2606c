// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.plane.loop;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ServingException;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.api.store.ResourceStore.Change;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The watches of a controller: each type is listed, then watched from the listed version, so that everything is known when
 * {@link #follow} returns, and no change is missed. A type that cannot be watched from there is listed again after a second.
 * Thread-safe; listeners are called without a lock.
 *
 * <pre>{@code
 * StoreWatches watches = new StoreWatches(store, loop);
 * watches.follow(SERVICES, change -> queue.add(key(change.resource())));
 * }</pre>
 */
public final class StoreWatches implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(StoreWatches.class);
    private static final Duration RETRY = Duration.ofSeconds(1);

    private final ResourceStore store;
    private final EventLoop loop;

    @GuardedBy("this") private final List<ResourceStore.Watch> watches = new ArrayList<>();

    @GuardedBy("this") private boolean closed;

    /** @param loop closed by the caller, after this */
    public StoreWatches(ResourceStore store, EventLoop loop) {
        this.store = store;
        this.loop = loop;
    }

    /** Passes all resources of a type to a listener, as added, and then their changes. Does nothing after {@link #close}. */
    public void follow(ResourceStore.Type type, Consumer<Change> listener) {
        synchronized (this) {
            if (closed) {
                return;
            }
        }
        ResourceStore.Listing listing = store.list(type, null);
        listing.items().forEach(r -> listener.accept(new Change(Change.Kind.ADDED, listing.version(), r)));
        ResourceStore.Watch watch;
        try {
            watch = store.watch(type, null, listing.version(), listener);
        } catch (ServingException e) {
            LOG.warn("{} are listed again: {}", type.plural(), e.describe());
            EventLoop.Timer unused = loop.after(RETRY, () -> follow(type, listener));
            return;
        }
        synchronized (this) {
            if (!closed) {
                watches.add(watch);
                return;
            }
        }
        watch.close();
    }

    /** Stops all watches. */
    @Override
    public synchronized void close() {
        closed = true;
        watches.forEach(ResourceStore.Watch::close);
        watches.clear();
    }
}
