// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelControl.Label;
import io.nereid.spi.ModelControl.ModelStatus;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.Source;
import io.nereid.spi.Source.Aspired;
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
 * The only mover of versions: receives whole lists of aspired versions, loads, warms, swaps, drains and unloads, and gives
 * handles to what serves. Thread-safe: one thread decides; readers see an immutable map in one volatile field.
 *
 * <p>A version goes TRACKED → LOADING → WARMING → AVAILABLE → DRAINING → UNLOADING → GONE; up to AVAILABLE it may become
 * FAILED, which it leaves on a changed fingerprint, on {@link #retry} or when it is no longer aspired. A version whose
 * fingerprint changes is reloaded: loaded beside its former self, which goes on to serve and is drained afterwards; if
 * that fails, the former self stays AVAILABLE and carries the reason. First of all the former self is asked to adopt what
 * is new, which needs no reload.
 *
 * <p>A version that depends on other models stays TRACKED until these have settled. When what is available of them changes,
 * it is loaded anew beside itself; if that fails it becomes FAILED, for what it was built on is not there any more, and is
 * tried again at the next change.
 */
public final class Manager implements Source.Target, AutoCloseable {
    private static final Duration CLOSE_PATIENCE = Duration.ofSeconds(30);

    private final Map<String, List<Aspired>> pending = new ConcurrentHashMap<>();
    private final Set<String> retries = ConcurrentHashMap.newKeySet();
    private final Decider decider;

    /** A manager with threads of its own, started when first needed. */
    public Manager(ManagerOptions options, Clock clock) {
        this.decider = new Decider(options, clock);
    }

    Manager(Decider decider) {
        this.decider = decider;
    }

    /**
     * {@inheritDoc} Of several lists for one model that were not yet looked at, the newest counts.
     *
     * @throws ServingException INTERNAL when the list names another model or a version twice; nothing changes then
     */
    @Override
    public void aspire(String model, List<Aspired> versions) {
        Set<ServableId> seen = new HashSet<>();
        for (Aspired a : versions) {
            if (!a.id().model().equals(model) || !seen.add(a.id())) {
                throw ServingException.of(
                        ErrorCode.INTERNAL,
                        "the list of versions for model '" + model + "' names " + a.id()
                                + " (expected: every version once, of this model)");
            }
        }
        if (pending.put(model, List.copyOf(versions)) == null) {
            decider.decide(() -> {
                List<Aspired> newest = pending.remove(model);
                if (newest != null) {
                    decider.aspired(model, newest, retries.remove(model));
                }
            });
        }
    }

    /**
     * Lets the next list for a model bring its failed versions back, even when their fingerprints are the same. To be
     * called before that list is sent.
     */
    public void retry(String model) {
        retries.add(model);
    }

    /**
     * The right to use a version: the one named; one of those that a label stands for and that are available, by turns
     * according to their weights; or the highest available one. Never blocks; one volatile read and one counter.
     *
     * @throws ServingException NOT_FOUND for a model or version nobody knows and for a model or label without an available
     *     version, INVALID_ARGUMENT for a label that the model does not have, UNAVAILABLE for a version that is known but
     *     not available, and once closing has begun
     */
    public ServableHandle acquire(ModelRef ref) {
        while (true) {
            ServingMap map = decider.map();
            Live live = map.find(ref);
            if (live == null) {
                throw decider.closing()
                        ? ServingException.of(
                                ErrorCode.UNAVAILABLE, "the server is stopping; no model is served any more")
                        : map.missing(ref);
            }
            int stripe = live.retain();
            if (stripe >= 0) {
                return new ServableHandle(live, stripe);
            }
            // Drained since the map was read, so there is a newer map.
        }
    }

    /**
     * The right to use the version that gets a copy of one request, whose answer is thrown away: drawn from the shadows of
     * the label by their shares. To be asked once for each request that names a label. Shares that add up to more than
     * one are divided by their sum, for a request has one shadow at most. Costs as little as {@link #acquire}.
     *
     * @return null for most requests, for those whose shadow does not serve, and for what has no shadows
     */
    public @Nullable ServableHandle shadow(ModelRef ref) {
        Live live = decider.map().shadow(ref);
        int stripe = live == null ? -1 : live.retain();
        return live == null || stripe < 0 ? null : new ServableHandle(live, stripe);
    }

    /**
     * Replaces all labels of a model, which need not be known yet, and keeps them until the next call. In force for every
     * request that begins after this call returns. Does not ask whether the versions serve: see {@link #checkLabels}.
     *
     * @throws ServingException INVALID_ARGUMENT, nothing having changed, for a label without a name or targets, a negative
     *     version, or a weight that is not above 0 (for shadows: not from 0 to 1)
     */
    public void labels(String model, Map<String, Label> labels) {
        labels.forEach((name, label) -> check(model, name, label));
        decider.labels(model, Map.copyOf(labels));
    }

    /** The labels of a model, by name; empty for a model nobody knows. */
    public Map<String, Label> labels(String model) {
        return decider.map().labels(model);
    }

    /**
     * Checks whether all of a model's labels may be replaced by these, as versions serve now; changes nothing.
     *
     * @throws ServingException FAILED_PRECONDITION for a target that does not serve, unless the rule allows it
     */
    public void checkLabels(String model, Map<String, Label> labels, LabelRule rule) {
        ServingMap map = decider.map();
        ServingMap.Entry entry = map.entry(model);
        rule.check(model, labels, map.labels(model), version -> entry != null && entry.live(version) != null);
    }

    private static void check(String model, String name, Label label) {
        boolean good = !name.isEmpty()
                && !label.targets().isEmpty()
                && label.targets().stream()
                        .allMatch(s -> s.version() >= 0 && s.weight() > 0 && s.weight() < Double.POSITIVE_INFINITY)
                && label.shadows().stream().allMatch(s -> s.version() >= 0 && s.weight() >= 0 && s.weight() <= 1);
        if (!good) {
            throw ServingException.invalidArgument("label '" + name + "' of model '" + model + "' stands for " + label
                    + " (expected: a name, at least one target, versions from 0 on, targets' weights above 0, shadows'"
                    + " shares from 0 to 1)");
        }
    }

    /** Every known model, by name: aspired ones, and those that ended a while ago. */
    public List<ModelStatus> index() {
        return decider.map().index();
    }

    /** The states of one model's versions, by descending version; empty for a model nobody knows. */
    public List<ServableState> states(String model) {
        ServingMap.Entry entry = decider.map().entry(model);
        return entry == null ? List.of() : entry.states();
    }

    /**
     * Whether every model with aspired versions answers: at least one of its versions is available, and for each version
     * that failed an older one (or the same one as loaded before) serves in its place.
     */
    public boolean ready() {
        return !decider.closing() && decider.map().ready();
    }

    /**
     * Whether a model (any version, the one named, or one that the label stands for) answers.
     *
     * @throws ServingException NOT_FOUND for a model or version nobody knows, INVALID_ARGUMENT for such a label
     */
    public boolean ready(ModelRef ref) {
        ServingMap map = decider.map();
        if (map.find(ref) != null) {
            return true;
        }
        if (map.known(ref)) {
            return false;
        }
        throw map.missing(ref);
    }

    /**
     * Tells {@code listener} of every step of every version from now on, on the deciding thread: it must be quick. A step
     * is told after readers can see it. Run the result to stop.
     */
    public Runnable listen(Consumer<ServableState> listener) {
        return decider.listen(listener);
    }

    /**
     * Completes when the versions of a model that are aspired now, all lists sent before this call included, are AVAILABLE
     * or FAILED; with none aspired, when none is available. The result has the state of each, by descending version; a
     * reload that failed shows as AVAILABLE with a reason. Completes on the deciding thread: what follows must be quick.
     * Fails with UNAVAILABLE when the manager is closed first.
     */
    public CompletionStage<List<ServableState>> settled(String model) {
        return decider.settled(List.of(model)).minimalCompletionStage();
    }

    /** As {@link #settled(String)}, for several models: completes when all have settled, with the states of all. */
    public CompletionStage<List<ServableState>> settled(Collection<String> models) {
        return decider.settled(List.copyOf(models)).minimalCompletionStage();
    }

    /**
     * Completes when each of these has come to a goal, or can no longer: a version named, when it is at the goal or has
     * ended; no version named, or a label, when any version meant is at the goal or all of them have ended. What is at the
     * goal at the time of the call counts, what has passed it before does not. With nothing to wait for, completes at
     * once; after {@code timeout}, with how things stand then. Completes on the deciding thread: what follows must be
     * quick. Fails with UNAVAILABLE when the manager is closed first.
     */
    public CompletionStage<Reached> waitUntil(Collection<ModelRef> models, Phase goal, Duration timeout) {
        return decider.reached(List.copyOf(models), goal, timeout).minimalCompletionStage();
    }

    /**
     * What came of waiting. Immutable.
     *
     * @param all whether everything has come to the goal
     * @param phases where versions stood when they had come to the goal or to their end, or at last
     */
    public record Reached(boolean all, Map<ServableId, Phase> phases) {}

    /** Bytes held by versions, from before their loading until after their unloading: first by estimate, then as measured. */
    public long memoryBytes() {
        return decider.memoryBytes();
    }

    /** Most bytes that versions may hold together; 0 for no limit. */
    public long memoryLimit() {
        return decider.memoryLimit();
    }

    /** As {@link #close(Duration)}, with half a minute of patience. */
    @Override
    public void close() {
        close(CLOSE_PATIENCE);
    }

    /**
     * Ends it: gives out no more handles, unloads every version when its last handle is closed, and waits for that. When
     * patience runs out, threads are interrupted and what is still in use is left as it is. Idempotent.
     *
     * @return whether everything was unloaded
     */
    public boolean close(Duration patience) {
        return decider.close(patience);
    }
}
