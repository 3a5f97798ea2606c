// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.inprocess;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.TrainedModel;
import io.nereid.control.core.trainedmodel.TrainedModelPlan.Phase;
import io.nereid.control.core.trainedmodel.TrainedModelPlan.State;
import io.nereid.control.plane.loop.EventLoop;
import io.nereid.control.plane.trainedmodel.TrainedModelServers;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Brings the TrainedModels of services to their runners in the engine, and the states of the models back. Thread-safe;
 * runners join and leave on the event loop thread.
 */
public final class EngineTrainedModels implements TrainedModelServers {
    private static final State LOADING = new State(Phase.LOADING, "");
    private static final State NOT_HERE = new State(
            Phase.FAILED,
            "the predictor does not run in the engine, which alone loads TrainedModels on one machine; name a runtime of"
                    + " the engine, or give the model an InferenceService of its own");

    private final EventLoop loop;
    private volatile BiConsumer<String, String> listener = (namespace, service) -> {};

    /** Confined to the event loop thread. */
    private final Map<String, List<TrainedModel>> wanted = new HashMap<>();

    /** Changed on the event loop thread. */
    private final Map<String, Set<MultiModelRunner>> runners = new ConcurrentHashMap<>();

    /** The services whose predictors are processes. */
    private final Set<String> outside = ConcurrentHashMap.newKeySet();

    private final Map<String, Map<String, State>> states = new ConcurrentHashMap<>();

    public EngineTrainedModels(EventLoop loop) {
        this.loop = loop;
    }

    private static String key(String namespace, String service) {
        return namespace + "/" + service;
    }

    @Override
    public boolean place(ObjectNode service, List<TrainedModel> models) {
        JsonNode metadata = service.path("metadata");
        String key =
                key(metadata.path("namespace").asText(""), metadata.path("name").asText(""));
        List<TrainedModel> copy = List.copyOf(models);
        loop.execute(() -> {
            wanted.put(key, copy);
            List.copyOf(runners.getOrDefault(key, Set.of())).forEach(runner -> runner.models(copy));
        });
        return true;
    }

    @Override
    public State state(String namespace, String service, String model) {
        String key = key(namespace, service);
        if (outside.contains(key)) {
            return NOT_HERE;
        }
        return states.getOrDefault(key, Map.of()).getOrDefault(model, LOADING);
    }

    @Override
    public void onChange(BiConsumer<String, String> to) {
        listener = to;
    }

    /** A runner of a service begins. Returns the models that it shall have; null while they are not known. */
    @Nullable List<TrainedModel> join(String namespace, String service, MultiModelRunner runner) {
        String key = key(namespace, service);
        outside.remove(key);
        runners.computeIfAbsent(key, unused -> new HashSet<>()).add(runner);
        return wanted.get(key);
    }

    /** The predictor of a service runs in a process, which is given no models. */
    public void runsOutside(String namespace, String service) {
        outside.add(key(namespace, service));
    }

    /** A runner ends. */
    void leave(String namespace, String service, MultiModelRunner runner) {
        String key = key(namespace, service);
        Set<MultiModelRunner> of = runners.get(key);
        if (of != null && of.remove(runner) && of.isEmpty()) {
            runners.remove(key);
            states.remove(key);
            wanted.remove(key);
        }
    }

    /** A model is removed from a service, so that one of the same name begins anew. */
    void forget(String namespace, String service, String model) {
        Map<String, State> of = states.get(key(namespace, service));
        if (of != null) {
            of.remove(model);
        }
    }

    /** The state of a model has changed in a runner; of several runners, the last one that reports counts. */
    void report(String namespace, String service, String model, State state) {
        @Nullable State before = states.computeIfAbsent(key(namespace, service), unused -> new ConcurrentHashMap<>())
                .put(model, state);
        if (!state.equals(before)) {
            listener.accept(namespace, service);
        }
    }
}
