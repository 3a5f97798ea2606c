// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.lifecycle.policy.LabelAssignmentPolicy;
import io.nereid.lifecycle.serving.LiveServable;
import io.nereid.lifecycle.serving.ServingMap;
import io.nereid.lifecycle.waiters.WaitResult;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.Source;
import io.nereid.spi.management.ModelStatus;
import io.nereid.spi.management.VersionLabel;
import java.time.Duration;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Manages the life of all servables (TensorFlow Serving: {@code AspiredVersionsManager}). Sources send it complete
 * lists of aspired versions; it loads, warms up, drains and unloads versions accordingly, and gives request threads
 * handles to available versions.
 *
 * <pre>{@code
 * try (ServableManager manager = new ServableManager(ManagerOptions.DEFAULT, Clock.system())) {
 *     manager.aspire("resnet", List.of(Aspired.of(loader)));
 *     manager.settled("resnet").toCompletableFuture().join();
 *     try (ServableHandle handle = manager.acquire(ModelRef.latest("resnet"))) {
 *         handle.servable(); // stays loaded until the handle is closed
 *     }
 * }
 * }</pre>
 *
 * <p><b>States.</b> TRACKED → LOADING → WARMING → AVAILABLE → DRAINING → UNLOADING → GONE. Before AVAILABLE a version
 * may become FAILED; it leaves that state when its fingerprint changes, after {@link #retry}, or when it is no longer
 * aspired.
 *
 * <p><b>Reload.</b> When the fingerprint of an available version changes, its loader is first offered to adopt the
 * change without a reload. Otherwise the new version is loaded while the old one stays available; then the old one is
 * drained. If the load fails, the old one stays AVAILABLE and has the failure as its reason.
 *
 * <p><b>Dependencies.</b> A version that depends on other models stays TRACKED until these have settled. When their
 * available versions change, it is reloaded. If that fails it becomes FAILED, because the versions that it was built on
 * are gone, and is tried again at the next change.
 *
 * <p>Thread-safe: all changes are made by one thread, and readers use an immutable map in a volatile field.
 */
public final class ServableManager implements Source.Target, AutoCloseable {
    private static final Duration CLOSE_PATIENCE = Duration.ofSeconds(30);

    private final Map<String, List<AspiredVersion>> pending = new ConcurrentHashMap<>();
    private final Set<String> retries = ConcurrentHashMap.newKeySet();
    private final ManagerLoop loop;

    /** Creates a manager with its own threads, which start when they are first needed. */
    public ServableManager(ManagerOptions options, Clock clock) {
        this.loop = new ManagerLoop(options, clock);
    }

    ServableManager(ManagerLoop loop) {
        this.loop = loop;
    }

    /**
     * {@inheritDoc} If several lists for one model arrive before the first is processed, only the newest is used.
     *
     * @throws ServingException INTERNAL, without a change, when the list contains another model or a version twice
     */
    @Override
    public void aspire(String model, List<AspiredVersion> versions) {
        Set<ServableId> seen = new HashSet<>();
        for (AspiredVersion a : versions) {
            if (!a.id().model().equals(model) || !seen.add(a.id())) {
                throw ServingException.of(
                        ErrorCode.INTERNAL,
                        "the list of versions for model '" + model + "' contains " + a.id()
                                + " (expected: every version once, of this model)");
            }
        }
        if (pending.put(model, List.copyOf(versions)) == null) {
            loop.submit(() -> {
                List<AspiredVersion> newest = pending.remove(model);
                if (newest != null) {
                    loop.aspired(model, newest, retries.remove(model));
                }
            });
        }
    }

    /**
     * Makes the next list for a model load its failed versions again, even if their fingerprints are unchanged. Call
     * this before sending the list.
     */
    public void retry(String model) {
        retries.add(model);
    }

    /**
     * Returns a handle to the requested version; for a label, to one of its available targets, chosen at random by
     * weight; otherwise to the highest available version. Never blocks: one volatile read and one striped counter.
     *
     * @throws ServingException NOT_FOUND for an unknown model or version, and for a model or label without an available
     *     version; INVALID_ARGUMENT for a label that the model does not have; UNAVAILABLE for a version that is known
     *     but not available, and after {@link #close}
     */
    public ServableHandle acquire(ModelRef ref) {
        while (true) {
            ServingMap map = loop.map();
            LiveServable live = map.find(ref);
            if (live == null) {
                throw loop.closing()
                        ? ServingException.of(
                                ErrorCode.UNAVAILABLE, "the server is stopping; no model is served any more")
                        : map.missing(ref);
            }
            int stripe = live.retain();
            if (stripe >= 0) {
                return new ServableHandle(live, stripe);
            }
            // The version was drained after the map was read. A newer map was published before that, so read it.
        }
    }

    /**
     * Returns a handle to the shadow version that receives a copy of a request, whose response is dropped. It is chosen
     * at random from the shadows of the label by their shares; shares with a sum above 1 are divided by it, since a
     * request has at most one shadow. Call this once for each request with a label. As cheap as {@link #acquire}.
     *
     * @return null when this request is not copied: by its share, because the shadow is not available, or without
     *     shadows
     */
    public @Nullable ServableHandle shadow(ModelRef ref) {
        LiveServable live = loop.map().shadow(ref);
        int stripe = live == null ? -1 : live.retain();
        return live == null || stripe < 0 ? null : new ServableHandle(live, stripe);
    }

    /**
     * Replaces all labels of a model, until the next call. The model does not have to be known yet. Effective for all
     * requests that begin after this method returns. Does not check that the versions are available; see
     * {@link #checkLabels}.
     *
     * @throws ServingException INVALID_ARGUMENT, without a change, for a label without a name or targets, a negative
     *     version, or a weight that is not above 0 (for shadows: not from 0 to 1)
     */
    public void labels(String model, Map<String, VersionLabel> labels) {
        labels.forEach((name, label) -> check(model, name, label));
        loop.labels(model, Map.copyOf(labels));
    }

    /** Returns the labels of a model by name; empty for an unknown model. */
    public Map<String, VersionLabel> labels(String model) {
        return loop.map().labels(model);
    }

    /**
     * Checks whether the labels of a model may be replaced by these, with the versions that are available now. Changes
     * nothing.
     *
     * @throws ServingException FAILED_PRECONDITION for a target that is not available, unless the policy allows it
     */
    public void checkLabels(String model, Map<String, VersionLabel> labels, LabelAssignmentPolicy rule) {
        ServingMap map = loop.map();
        ServingMap.Entry entry = map.entry(model);
        rule.check(model, labels, map.labels(model), version -> entry != null && entry.live(version) != null);
    }

    private static void check(String model, String name, VersionLabel label) {
        boolean good = !name.isEmpty()
                && !label.targets().isEmpty()
                && label.targets().stream()
                        .allMatch(s -> s.version() >= 0 && s.weight() > 0 && s.weight() < Double.POSITIVE_INFINITY)
                && label.shadows().stream().allMatch(s -> s.version() >= 0 && s.weight() >= 0 && s.weight() <= 1);
        if (!good) {
            throw ServingException.invalidArgument("label '" + name + "' of model '" + model + "' refers to " + label
                    + " (expected: a name, at least one target, versions from 0 on, targets' weights above 0, shadows'"
                    + " shares from 0 to 1)");
        }
    }

    /** Returns all known models by name: aspired ones, and those that ended recently. */
    public List<ModelStatus> index() {
        return loop.map().index();
    }

    /** Returns the states of a model's versions, by descending version; empty for an unknown model. */
    public List<ServableState> states(String model) {
        ServingMap.Entry entry = loop.map().entry(model);
        return entry == null ? List.of() : entry.states();
    }

    /**
     * Returns whether every model with aspired versions is ready: at least one version is available, and for each
     * failed version an older one, or its previous load, is available in its place.
     */
    public boolean ready() {
        return !loop.closing() && loop.map().ready();
    }

    /**
     * Returns whether a model is ready: any version, the requested one, or one that the label refers to.
     *
     * @throws ServingException NOT_FOUND for an unknown model or version, INVALID_ARGUMENT for an unknown label
     */
    public boolean ready(ModelRef ref) {
        ServingMap map = loop.map();
        if (map.find(ref) != null) {
            return true;
        }
        if (map.known(ref)) {
            return false;
        }
        throw map.missing(ref);
    }

    /**
     * Notifies {@code listener} of every state change of every version from now on. Called on the manager thread, so it
     * must be quick, and after readers can see the new state. Run the result to stop.
     */
    public Runnable listen(Consumer<ServableState> listener) {
        return loop.listen(listener);
    }

    /**
     * Completes when the versions of a model that are aspired now, including all lists sent before this call, are
     * AVAILABLE or FAILED; without aspired versions, when no version is available. The result has the state of each
     * version, by descending version; a failed reload is AVAILABLE with a reason. Completes on the manager thread, so
     * dependent stages must be quick. Fails with UNAVAILABLE when the manager is closed first.
     */
    public CompletionStage<List<ServableState>> settled(String model) {
        return loop.settled(List.of(model)).minimalCompletionStage();
    }

    /** As {@link #settled(String)}, for several models: completes with the states of all when all have settled. */
    public CompletionStage<List<ServableState>> settled(Collection<String> models) {
        return loop.settled(List.copyOf(models)).minimalCompletionStage();
    }

    /**
     * Completes when each of these references has reached a phase or can no longer reach it. A reference to a version:
     * when that version is in the phase or has ended. A reference without a version, or with a label: when any of its
     * versions is in the phase, or all have ended. The phase at the time of the call counts; phases before that do not.
     * Completes at once for an empty collection, and after {@code timeout} with the phases at that time. Completes on
     * the manager thread, so dependent stages must be quick. Fails with UNAVAILABLE when the manager is closed first.
     */
    public CompletionStage<WaitResult> waitUntil(Collection<ModelRef> models, Phase goal, Duration timeout) {
        return loop.reached(List.copyOf(models), goal, timeout).minimalCompletionStage();
    }

    /**
     * Returns the bytes reserved for versions, from before their load until after their unload: first the estimate,
     * then the measured size.
     */
    public long memoryBytes() {
        return loop.memoryBytes();
    }

    /** Returns the memory limit of all versions in bytes; 0 for no limit. */
    public long memoryLimit() {
        return loop.memoryLimit();
    }

    /** As {@link #close(Duration)}, with a timeout of 30 seconds. */
    @Override
    public void close() {
        close(CLOSE_PATIENCE);
    }

    /**
     * Closes the manager: gives no more handles, unloads every version when its last handle is closed, and waits for
     * that. After the timeout, threads are interrupted and versions that are still in use stay loaded. Idempotent.
     *
     * @return whether all versions were unloaded
     */
    public boolean close(Duration patience) {
        return loop.close(patience);
    }
}
