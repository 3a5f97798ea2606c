// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Decides which pod of a pool loads and unloads which model. Confined to one thread, its owner; requests use
 * {@link #table} from any thread. Deterministic: the same calls with the same times give the same actions. Times are
 * nanoseconds of {@code Clock.nanos()}.
 *
 * <ul>
 *   <li>A model is loaded when a request needs it, on the first pod after its place on the {@link HashRing} that is within
 *       the bounds; a model that is loaded stays where it is.
 *   <li>Memory is reserved before a load. The least recently used idle copies are unloaded first, and the load waits for the
 *       end of these unloads.
 *   <li>A model has several copies by its load, and two when it is used often and memory suffices.
 *   <li>{@link #lost}: models in use that have lost their last copy are loaded elsewhere at once, those with the most
 *       requests first, each pod a few at a time. Others wait for their next request.
 *   <li>{@link #join}: only models in use whose place on the ring is the new pod's move to it, up to the average share; the old
 *       copy serves until the new one is loaded.
 *   <li>{@link #drain}: models in use are loaded elsewhere first, and unloaded afterwards. Loads that requests wait for go
 *       before these; what is still on the pod after {@link PlacementSettings#drain} is unloaded, and its next request loads it.
 * </ul>
 *
 * <pre>{@code
 * PoolPlacement placement = new PoolPlacement(PlacementSettings.DEFAULT);
 * placement.join(new PooledPod("pod-0", 4L << 30, 4, 2), clock.nanos());
 * placement.add(new PooledModel("iris", 64L << 20, false), clock.nanos());
 * placement.request("iris", clock.nanos());
 * for (PlacementAction action : placement.actions(clock.nanos())) {
 *     carryOut(action);   // and report with loaded, loadFailed or unloaded
 * }
 * }</pre>
 */
public final class PoolPlacement {
    private final PlacementSettings settings;
    private final CopyPolicy policy;
    private final Map<String, PodState> pods = new TreeMap<>();
    private final Map<String, ModelState> models = new LinkedHashMap<>();
    private final PodChooser chooser;
    private final CopyTable table = new CopyTable();
    private List<PlacementAction> actions = new ArrayList<>();
    private final Set<PodState> changed = new LinkedHashSet<>();
    private double referenceMemory;
    private long number;
    private long tickedAt;
    private boolean ticked;

    /** Creates the placement of a pool without pods and models. */
    public PoolPlacement(PlacementSettings settings) {
        this.settings = settings;
        this.policy = new CopyPolicy(settings);
        this.chooser = new PodChooser(settings, pods);
    }

    /** The loaded copies, for the threads of requests. */
    public CopyTable table() {
        return table;
    }

    /**
     * Starts what has become possible, and returns the actions that were decided since the last call, in order. The caller
     * carries them out. After {@link #loaded}, send the requests that wait for the model before this call: the next load may
     * displace a copy that has none.
     */
    public List<PlacementAction> actions(long now) {
        while (!changed.isEmpty()) {
            PodState pod = changed.iterator().next();
            changed.remove(pod);
            pump(pod, now);
        }
        List<PlacementAction> decided = actions;
        actions = new ArrayList<>();
        return decided;
    }

    /**
     * Adds a model; it is loaded by its first request, a pinned one at once.
     *
     * @throws ServingException ALREADY_EXISTS for a name that the pool has; RESOURCE_EXHAUSTED for a pinned model that fits
     *     nowhere
     */
    public void add(PooledModel model, long now) {
        if (models.containsKey(model.name())) {
            throw ServingException.of(
                    ErrorCode.ALREADY_EXISTS,
                    "the pool already has a model '" + model.name() + "'",
                    "remove it first, or use another name");
        }
        ModelState state = new ModelState(model, chooser.ring().hash(model.name()), settings, now);
        if (model.pinned() && !pods.isEmpty()) {
            place(state, LoadTask.Reason.RECOVERY, now);
        }
        models.put(model.name(), state);
    }

    /** Removes a model: its copies are unloaded after their last request. Unknown names are ignored. */
    public void remove(String name, long now) {
        ModelState model = models.get(name);
        if (model == null) {
            return;
        }
        for (LoadTask task : List.copyOf(model.waiting.values())) {
            cancel(model, task);
        }
        // A load in progress ends with an unload: the model is not known any more by then.
        List.copyOf(model.copies.values()).forEach(copy -> retire(model, copy));
        models.remove(name);
        changed.addAll(pods.values());
    }

    /**
     * A request needs a model that {@link CopyTable#acquire} has no copy of. Starts a load unless one is on its way, which
     * becomes urgent.
     *
     * @return the pod that has it or will have it
     * @throws ServingException NOT_FOUND for an unknown model; RESOURCE_EXHAUSTED when the pool has no pod with enough memory
     *     that could be freed
     */
    public String request(String name, long now) {
        ModelState model = model(name);
        model.usage.used(now);
        if (!model.copies.isEmpty()) {
            return model.copies.keySet().iterator().next();
        }
        for (String pod : model.loading) {
            return pod;
        }
        for (LoadTask task : model.waiting.values()) {
            if (task.reason() == LoadTask.Reason.DEMAND) {
                return task.pod();
            }
        }
        for (LoadTask task : List.copyOf(model.waiting.values())) {
            cancel(model, task);
            enqueue(model, task.pod(), LoadTask.Reason.DEMAND);
            return task.pod();
        }
        return place(model, LoadTask.Reason.DEMAND, now);
    }

    /**
     * Takes over a model that a pod has already, as after a restart of the owner: it counts as a load that runs, whose end
     * the caller reports with {@link #loaded} or {@link #loadFailed}.
     *
     * @return false when the pod or the model is unknown, the pod has the model, or it has no memory for it
     */
    public boolean adopt(String name, String podName, long now) {
        PodState pod = pods.get(podName);
        ModelState model = models.get(name);
        if (pod == null || model == null || pod.draining || pod.memory.holds(name) || pod.memory.free() < model.bytes) {
            return false;
        }
        LoadTask waiting = model.waiting.get(podName);
        if (waiting != null) {
            cancel(model, waiting);
        }
        pod.memory.reserve(name, model.bytes, model.model.pinned());
        model.loading.add(podName);
        pod.loading++;
        return true;
    }

    /**
     * Counts requests of a model that others than the threads of this process have sent, such as gateways. Unknown names
     * are ignored.
     *
     * @param requests how many have begun
     * @param busyNanos how long they have occupied workers, all together
     */
    public void observe(String name, long requests, long busyNanos, long now) {
        ModelState model = models.get(name);
        if (model != null && requests + busyNanos > 0) {
            model.usage.add(requests, busyNanos, now);
            model.copies.values().forEach(copy -> copy.used(now));
        }
    }

    /** A load has ended. What was not ordered, or was on a pod that is lost, is ignored. */
    public void loaded(String name, String podName, long measuredBytes, long now) {
        PodState pod = pods.get(podName);
        ModelState model = models.get(name);
        if (pod == null || !pod.memory.isLoading(name)) {
            return;
        }
        pod.loading--;
        if (model == null || !model.loading.remove(podName)) {
            unload(pod, name);
            changed.add(pod);
            return;
        }
        model.bytes = measuredBytes;
        model.failures.remove(podName);
        ModelCopy copy = new ModelCopy(name, pod.load, model.usage, model.usage.lastUsed());
        pod.memory.loaded(copy, measuredBytes);
        model.copies.put(podName, copy);
        table.add(copy);
        if (pod.memory.free() + pod.memory.leaving() < 0) {
            // It is larger than declared: others make way.
            evict(pod, 0, null);
        }
        retireSurplus(model);
        changed.add(pod);
    }

    /** A load has failed; the pod is not chosen for this model for a while. Waiting requests are the caller's to answer. */
    public void loadFailed(String name, String podName, long now) {
        PodState pod = pods.get(podName);
        if (pod == null || !pod.memory.isLoading(name)) {
            return;
        }
        pod.loading--;
        pod.memory.release(name);
        ModelState model = models.get(name);
        if (model != null) {
            model.loading.remove(podName);
            model.failures.put(podName, now);
        }
        changed.add(pod);
    }

    /** An unload has ended: its memory is free. */
    public void unloaded(String name, String podName, long now) {
        PodState pod = pods.get(podName);
        if (pod != null && pod.memory.isLeaving(name)) {
            pod.memory.release(name);
            changed.add(pod);
        }
    }

    /**
     * A pod joins. Models in use that belong to it move, the most used first, until it has its average share.
     *
     * @throws ServingException ALREADY_EXISTS for a name that the pool has
     */
    public void join(PooledPod joined, long now) {
        if (pods.containsKey(joined.name())) {
            throw ServingException.of(
                    ErrorCode.ALREADY_EXISTS,
                    "the pool already has a pod '" + joined.name() + "'",
                    "report the pod as lost before it joins again");
        }
        if (referenceMemory == 0) {
            referenceMemory = joined.memoryBytes();
        }
        PodState pod = new PodState(joined);
        pods.put(joined.name(), pod);
        rebuild(now);
        double bytes = chooser.fill() * joined.memoryBytes();
        double load = chooser.utilisation() * joined.workers();
        for (ModelState model : byRate(models.values())) {
            if (!model.inUse(now, settings) || model.copies.isEmpty() || bytes < model.bytes) {
                continue;
            }
            double share = model.demand.fastLoad() / model.copies.size();
            if (share <= load
                    && chooser.ring().sequence(model.place, model.copies.size()).contains(joined.name())) {
                enqueue(model, joined.name(), LoadTask.Reason.MOVE);
                bytes -= model.bytes;
                load -= share;
            }
        }
        loadPinned(now);
        changed.add(pod);
    }

    /**
     * A pod is gone, with everything on it; {@link #request} again for requests that waited for it. Unknown names are
     * ignored.
     */
    public void lost(String name, long now) {
        PodState pod = pods.remove(name);
        if (pod == null) {
            return;
        }
        changed.remove(pod);
        rebuild(now);
        List<ModelState> affected = new ArrayList<>();
        Map<ModelState, LoadTask.Reason> reasons = new HashMap<>();
        for (LoadTask task : pod.queue) {
            ModelState model = models.get(task.model());
            if (model != null && model.waiting.remove(name) != null) {
                affected.add(model);
                reasons.put(model, task.reason());
            }
        }
        for (String held : pod.memory.models()) {
            ModelState model = models.get(held);
            if (model != null) {
                ModelCopy copy = model.copies.remove(name);
                if (copy != null) {
                    copy.close();
                    table.remove(copy);
                }
                // Requests may wait for a load that was running.
                LoadTask.Reason reason = model.loading.remove(name) ? LoadTask.Reason.DEMAND : LoadTask.Reason.RECOVERY;
                affected.add(model);
                reasons.put(model, reason);
            }
        }
        for (ModelState model : byRate(affected)) {
            LoadTask.Reason reason = reasons.getOrDefault(model, LoadTask.Reason.RECOVERY);
            if (model.inUse(now, settings) && model.coming() < model.desired) {
                tryPlace(model, model.coming() == 0 ? reason : LoadTask.Reason.COPY, now, name);
            }
        }
    }

    /**
     * A pod shall go: it gets no further models, and those in use are loaded elsewhere while it still serves them, for at most
     * {@link PlacementSettings#drain}.
     */
    public void drain(String name, long now) {
        PodState pod = pods.get(name);
        if (pod == null || pod.draining) {
            return;
        }
        pod.draining = true;
        pod.drainingSince = now;
        rebuild(now);
        for (LoadTask task : List.copyOf(pod.queue)) {
            ModelState model = models.get(task.model());
            if (model != null) {
                cancel(model, task);
                if (model.coming() < model.desired) {
                    tryPlace(model, task.reason(), now, name);
                }
            }
        }
        drainStep(pod, now);
    }

    /** Whether a draining pod has nothing left that is in use, so that it can end. */
    public boolean isDrained(String name) {
        PodState pod = pods.get(name);
        return pod == null || (pod.draining && pod.memory.count() == 0);
    }

    /**
     * Measures the demand, adds and removes copies, and starts what had to wait. To be called every few seconds.
     *
     * @param now the time; the first call only starts the measurement
     */
    public void tick(long now) {
        double seconds = ticked ? (now - tickedAt) / 1e9 : 0;
        tickedAt = now;
        ticked = true;
        if (seconds > 0) {
            pods.values().forEach(pod -> pod.demand = 0);
            for (ModelState model : models.values()) {
                model.demand.update(model.usage.requests(), model.usage.busyNanos(), seconds);
                double share = model.share();
                for (Set<String> places : List.of(model.copies.keySet(), model.waiting.keySet(), model.loading)) {
                    for (String pod : places) {
                        PodState state = pods.get(pod);
                        if (state != null) {
                            state.demand += share;
                        }
                    }
                }
            }
        }
        chooser.refresh(now);
        boolean spare = chooser.age() > settings.redundantAge().toNanos();
        int able = chooser.ring().pods().size();
        List<ModelState> growing = new ArrayList<>();
        for (ModelState model : models.values()) {
            if (model.copies.isEmpty()) {
                model.desired = 1;
                continue;
            }
            model.desired = policy.copies(model.desired, model.demand, spare, Math.max(1, able));
            if (model.coming() < model.desired) {
                growing.add(model);
            } else {
                retireSurplus(model);
            }
        }
        for (ModelState model : byRate(growing)) {
            boolean placed = true;
            while (placed && model.coming() < model.desired) {
                placed = tryPlace(model, LoadTask.Reason.COPY, now, null);
            }
        }
        loadPinned(now);
        for (PodState pod : pods.values()) {
            if (pod.draining) {
                drainStep(pod, now);
            }
            retireIdle(pod);
            changed.add(pod);
        }
    }

    /** The pods that serve, in order of their names, without those that drain. */
    public List<String> pods() {
        return chooser.ring().pods();
    }

    /** What one pod carries, for status and metrics; null when the pool does not have it. */
    public @Nullable PodFigures figures(String name) {
        PodState pod = pods.get(name);
        return pod == null
                ? null
                : new PodFigures(
                        pod.memory.limit(),
                        pod.memory.used(),
                        pod.memory.count(),
                        pod.pending(),
                        pod.demand,
                        pod.load.inFlight());
    }

    /** The rates and sizes of all models, for {@link WorkingSet}. */
    public WorkingSet.Demand demand() {
        double[] rates = new double[models.size()];
        long[] bytes = new long[rates.length];
        int i = 0;
        for (ModelState model : models.values()) {
            rates[i] = model.demand.longRate();
            bytes[i++] = model.bytes * model.desired;
        }
        return new WorkingSet.Demand(rates, bytes);
    }

    /** Pinned models have a copy whenever one fits. */
    private void loadPinned(long now) {
        for (ModelState model : models.values()) {
            if (model.model.pinned() && model.coming() == 0) {
                tryPlace(model, LoadTask.Reason.RECOVERY, now, null);
            }
        }
    }

    private void drainStep(PodState pod, long now) {
        boolean overdue = now - pod.drainingSince >= settings.drain().toNanos();
        List<ModelState> held = new ArrayList<>();
        for (String name : pod.memory.models()) {
            ModelState model = models.get(name);
            if (model != null && model.copies.containsKey(pod.name())) {
                held.add(model);
            }
        }
        for (ModelState model : byRate(held)) {
            ModelCopy copy = model.copies.get(pod.name());
            if (copy == null) {
                continue;
            }
            if (model.copies.size() > 1 || !model.inUse(now, settings) || overdue) {
                retire(model, copy);
            } else if (model.coming() == 1
                    && !chooser.ring().pods().isEmpty()
                    && !tryPlace(model, LoadTask.Reason.RECOVERY, now, null)) {
                // No pod has memory for it but that of models which are used more.
                retire(model, copy);
            }
        }
    }

    private void rebuild(long now) {
        Map<String, Double> weights = new HashMap<>();
        pods.values().stream()
                .filter(pod -> !pod.draining)
                .forEach(pod -> weights.put(pod.name(), pod.pod.memoryBytes() / referenceMemory));
        chooser.ring(HashRing.of(weights, settings.seed()));
        chooser.refresh(now);
    }

    private boolean tryPlace(ModelState model, LoadTask.Reason reason, long now, @Nullable String except) {
        PodState pod = chooser.choose(model, now, except, spared(model, reason));
        if (pod == null) {
            return false;
        }
        enqueue(model, pod.name(), reason);
        return true;
    }

    private String place(ModelState model, LoadTask.Reason reason, long now) {
        PodState pod = chooser.choose(model, now, null, spared(model, reason));
        if (pod == null) {
            throw chooser.refused(model);
        }
        enqueue(model, pod.name(), reason);
        return pod.name();
    }

    private void enqueue(ModelState model, String podName, LoadTask.Reason reason) {
        PodState pod = pod(podName);
        LoadTask task = new LoadTask(model.name(), podName, reason, model.bytes, model.demand.fastRate(), number++);
        chooser.given(pod, model);
        pod.queue.add(task);
        pod.promised += task.bytes();
        model.waiting.put(podName, task);
        changed.add(pod);
    }

    private void cancel(ModelState model, LoadTask task) {
        PodState pod = pod(task.pod());
        if (pod.queue.remove(task)) {
            pod.promised -= task.bytes();
        }
        model.waiting.remove(task.pod());
    }

    /** Starts loads of a pod as far as its slots and its memory permit. */
    private void pump(PodState pod, long now) {
        while (pod.loading < pod.pod.loadSlots() && !pod.queue.isEmpty()) {
            LoadTask task = pod.queue.first();
            ModelState model = model(task.model());
            if (pod.memory.free() >= model.bytes) {
                cancel(model, task);
                pod.memory.reserve(model.name(), model.bytes, model.model.pinned());
                model.loading.add(pod.name());
                pod.loading++;
                actions.add(new PlacementAction(PlacementAction.Kind.LOAD, model.name(), pod.name(), model.bytes));
                continue;
            }
            if (evict(pod, model.bytes, spared(model, task.reason()))) {
                return; // the load starts when the memory is free
            }
            if (pod.memory.leaving() > 0) {
                return;
            }
            cancel(model, task);
            if (task.reason() == LoadTask.Reason.DEMAND) {
                // All of it is in use: another pod, or the same one later.
                PodState other = chooser.choose(model, now, pod.name(), null);
                enqueue(model, other == null ? pod.name() : other.name(), LoadTask.Reason.DEMAND);
                if (other == null) {
                    // The next tick tries again.
                    changed.remove(pod);
                    return;
                }
            }
        }
    }

    /** A load that no request waits for does not displace copies that were used after its own model. */
    private static @Nullable Long spared(ModelState model, LoadTask.Reason reason) {
        return reason == LoadTask.Reason.DEMAND || model.model.pinned() ? null : (Long) model.usage.lastUsed();
    }

    private boolean evict(PodState pod, long bytes, @Nullable Long before) {
        List<ModelCopy> victims = pod.memory.evict(bytes, before);
        if (victims == null) {
            return false;
        }
        for (ModelCopy victim : victims) {
            ModelState model = models.get(victim.model());
            if (model != null) {
                model.copies.remove(pod.name(), victim);
            }
            table.remove(victim);
            unload(pod, victim.model());
        }
        return true;
    }

    private void unload(PodState pod, String model) {
        long bytes = pod.memory.bytes(model);
        pod.memory.leave(model);
        actions.add(new PlacementAction(PlacementAction.Kind.UNLOAD, model, pod.name(), bytes));
    }

    /** Removes copies that are more than the desired ones: first on draining pods, then the last ones on the ring. */
    private void retireSurplus(ModelState model) {
        while (model.copies.size() > Math.max(1, model.desired)) {
            List<String> order =
                    chooser.ring().sequence(model.place, chooser.ring().pods().size());
            ModelCopy last = null;
            int place = -1;
            for (ModelCopy copy : model.copies.values()) {
                int at = order.indexOf(copy.pod());
                int rank = at < 0 ? order.size() : at;
                if (rank > place) {
                    place = rank;
                    last = copy;
                }
            }
            if (last == null) {
                return;
            }
            retire(model, last);
        }
    }

    /** Takes a copy out of service; it is unloaded once its requests have ended. */
    private void retire(ModelState model, ModelCopy copy) {
        PodState pod = pod(copy.pod());
        model.copies.remove(copy.pod(), copy);
        table.remove(copy);
        copy.close();
        pod.retiring.add(copy);
        pod.memory.leave(copy.model());
        retireIdle(pod);
    }

    private void retireIdle(PodState pod) {
        pod.retiring.removeIf(copy -> {
            if (!copy.isIdle()) {
                return false;
            }
            unload(pod, copy.model());
            return true;
        });
    }

    private List<ModelState> byRate(Iterable<ModelState> some) {
        List<ModelState> sorted = new ArrayList<>();
        some.forEach(sorted::add);
        sorted.sort(Comparator.comparingDouble((ModelState model) -> model.demand.fastRate())
                .reversed()
                .thenComparing(ModelState::name));
        return sorted;
    }

    private ModelState model(String name) {
        ModelState model = models.get(name);
        if (model == null) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND, "the pool has no model '" + name + "'", "add the model to the pool");
        }
        return model;
    }

    private PodState pod(String name) {
        PodState pod = pods.get(name);
        if (pod == null) {
            throw ServingException.of(ErrorCode.NOT_FOUND, "the pool has no pod '" + name + "'", "let the pod join");
        }
        return pod;
    }
}
