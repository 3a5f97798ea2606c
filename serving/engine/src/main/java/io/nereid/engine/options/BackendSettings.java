// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.options;

import io.nereid.backend.Backend;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The settings of backends, as {@code --backend-config [BACKEND,]KEY=VALUE} gives them. A backend receives those that it has: its own,
 * and those without a backend's name, over which its own win. What neither the backend nor Triton's backend of that name has is
 * refused; what only Triton's has changes no answer here, and is a line in the log. Immutable.
 */
public final class BackendSettings {
    private static final Logger LOG = LoggerFactory.getLogger(BackendSettings.class);

    /** The settings that Triton's server gives each of its backends. */
    private static final Set<String> OF_ALL =
            Set.of("auto-complete-config", "backend-directory", "default-max-batch-size", "min-compute-capability");

    /**
     * The settings of Triton's backends that have no counterpart: memory of GPUs, versions of libraries, queues and threads of
     * processes. See the documents of its tensorflow_backend and tensorrt_backend and the source of its python_backend.
     */
    private static final Map<String, Set<String>> TRITON = Map.of(
            "tensorflow", Set.of("allow-soft-placement", "gpu-memory-fraction", "version"),
            "python", Set.of("shm_message_queue_size", "thread-pool-size"),
            "tensorrt", Set.of("coalesce-request-input", "execution-policy"));

    /** Backends of Triton that this server does not have; their settings are for models that it refuses by name. */
    private static final Set<String> ABSENT =
            Set.of("dali", "fil", "identity", "openvino", "repeat", "square", "tensorrtllm", "vllm");

    private final Map<String, Map<String, String>> given;
    private final Map<String, Set<String>> names = new HashMap<>();

    /**
     * Checks the settings.
     *
     * @param given by backend's name; the empty name applies to all backends
     * @throws ServingException INVALID_ARGUMENT for a backend or a setting that does not exist, with the nearest name
     */
    public BackendSettings(Map<String, Map<String, String>> given, List<Backend> backends) {
        this.given = Map.copyOf(given);
        Set<String> all = new TreeSet<>();
        for (Backend backend : backends) {
            backend.settingNames().ifPresent(own -> {
                names.put(backend.name(), own);
                all.addAll(own);
            });
        }
        Set<String> known = new TreeSet<>(ABSENT);
        backends.forEach(backend -> known.add(backend.name()));
        given.forEach((backend, settings) -> {
            if (!backend.isEmpty() && !known.contains(backend)) {
                throw ServingException.invalidArgument(
                        "--backend-config '" + backend + ","
                                + settings.keySet().iterator().next() + "=…': there is no backend '" + backend + "'",
                        NameSuggestions.didYouMean(backend, known, "nereid version lists the backends"));
            }
        });
        for (String backend : given.keySet()) {
            Set<String> own = backend.isEmpty() ? all : names.get(backend);
            // Plugins that are not installed, and backends that check their settings themselves.
            if (own != null) {
                given.get(backend).keySet().forEach(key -> check(backend, key, own));
            } else if (ABSENT.contains(backend)) {
                LOG.warn(
                        "--backend-config {},… has no effect: this server does not have the backend {}",
                        backend,
                        backend);
            }
        }
    }

    /**
     * Reads settings as they are given.
     *
     * @param given each {@code BACKEND,KEY=VALUE}, or {@code KEY=VALUE} for every backend that has the setting
     * @return by backend's name, for the caller to change; the empty name applies to all backends
     * @throws ServingException INVALID_ARGUMENT for another form
     */
    public static Map<String, Map<String, String>> parse(List<String> given) {
        Map<String, Map<String, String>> settings = new HashMap<>();
        for (String setting : given) {
            int equals = setting.indexOf('=');
            int first = setting.indexOf(',');
            int comma = first < equals ? first : -1; // a later one is part of the value
            if (equals < 0 || comma == 0 || equals == comma + 1) {
                throw ServingException.invalidArgument(
                        "--backend-config '" + setting + "' is not [BACKEND,]KEY=VALUE",
                        "for example: --backend-config onnxruntime,default-max-batch-size=8");
            }
            settings.computeIfAbsent(setting.substring(0, Math.max(comma, 0)), b -> new HashMap<>())
                    .put(setting.substring(comma + 1, equals), setting.substring(equals + 1));
        }
        return settings;
    }

    private static void check(String backend, String key, Set<String> own) {
        if (own.contains(key)) {
            return;
        }
        String setting = backend.isEmpty() ? key : backend + "," + key;
        if (OF_ALL.contains(key) || TRITON.getOrDefault(backend, Set.of()).contains(key)) {
            LOG.warn("--backend-config {} has no effect: it is for Triton's backends alone", setting);
            return;
        }
        throw ServingException.invalidArgument(
                "--backend-config '" + setting + "=…': there is no setting '" + key + "' "
                        + (backend.isEmpty() ? "of any backend" : "of the backend " + backend)
                        + " (expected: " + String.join(", ", new TreeSet<>(own)) + ")",
                NameSuggestions.didYouMean(key, own, "leave it out"));
    }

    /** The settings that a backend receives. */
    public Map<String, String> of(String backend) {
        Map<String, String> settings = new HashMap<>(given.getOrDefault("", Map.of()));
        settings.putAll(given.getOrDefault(backend, Map.of()));
        Set<String> own = names.get(backend);
        if (own != null) {
            settings.keySet().retainAll(own);
        }
        return settings;
    }
}
