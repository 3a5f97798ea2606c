// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.runtime;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ServingEngine;
import io.nereid.control.api.ServingRuntime;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * The ClusterServingRuntimes that exist without being applied. Those named {@code kserve-…} have the names, formats,
 * priorities, protocols and arguments of the runtimes that KServe ships. Each has a counterpart named {@code nereid-…} with
 * the same formats, whose container is a server of Nereid on a cluster; {@value #GENERAL} has all formats of the engine.
 * The annotation {@value #ENGINE} marks runtimes whose models run in the engine of this server on one machine, where all
 * of them do. Stateless.
 */
public final class BuiltInRuntimes {
    /** The annotation with the value {@code "true"} of runtimes whose models run in the engine. */
    public static final String ENGINE = "nereid.io/engine";

    /** The value of the annotation {@code serving.kserve.io/server-type} of runtimes of the engine. */
    public static final String SERVER_TYPE = "nereid";

    /** The runtime with all formats of the engine. */
    public static final String GENERAL = "kserve-nereid";

    private static final String KSERVE = "kserve-";
    private static final String FILE = "built-in-runtimes.json";
    private static final String CONTAINER = "nereid-container.json";

    /** The servers of KServe whose port for gRPC is not that of its Python servers; clients may name it. */
    private static final Map<String, Integer> GRPC_PORTS =
            Map.of("mlserver", 9000, "tritonserver", 9000, "tensorflow-serving", 9000);

    private static final int GRPC_PORT = 8081;

    /** The names of the runtimes of the engine. */
    private static final Set<String> NAMES =
            ofEngine("").stream().map(BuiltInRuntimes::name).collect(Collectors.toUnmodifiableSet());

    private BuiltInRuntimes() {}

    /** All built-in runtimes as records. */
    public static List<ServingRuntime> all() {
        List<ServingRuntime> all = new ArrayList<>();
        for (ObjectNode tree : trees()) {
            all.add(ServingRuntime.read(tree));
        }
        return List.copyOf(all);
    }

    /** All built-in runtimes as resources; each call returns new trees, which the caller may modify. */
    public static List<ObjectNode> trees() {
        List<ObjectNode> all = new ArrayList<>();
        for (JsonNode one : read(FILE)) {
            if (!name(one).equals(GENERAL)) {
                all.add((ObjectNode) one);
            }
        }
        all.addAll(ofEngine("nereid/nereid"));
        return all;
    }

    /**
     * The runtimes of Nereid's engine as resources, for a cluster as well; each call returns new trees.
     *
     * @param image the image of the container, whose command is {@code nereid serve}
     */
    public static List<ObjectNode> ofEngine(String image) {
        List<ObjectNode> all = new ArrayList<>();
        for (JsonNode one : read(FILE)) {
            ObjectNode runtime = (ObjectNode) one;
            ObjectNode metadata = (ObjectNode) runtime.get("metadata");
            String name = name(runtime);
            String server = name.substring(KSERVE.length());
            metadata.put("name", name.equals(GENERAL) ? name : "nereid-" + server);
            metadata.putObject("annotations")
                    .put(ENGINE, "true")
                    .put(ServingEngine.ANNOTATION, ServingEngine.NEREID.text())
                    .put("serving.kserve.io/server-type", SERVER_TYPE);
            ObjectNode spec = (ObjectNode) runtime.get("spec");
            ObjectNode pod = pod(image);
            ObjectNode container = (ObjectNode) pod.path("containers").path(0);
            int grpc = GRPC_PORTS.getOrDefault(server, GRPC_PORT);
            ArrayNode args = (ArrayNode) container.get("args");
            args.add("--grpc_port=" + grpc);
            if (server.equals("tritonserver")) {
                args.add("--model_layout=repository");
            }
            if (server.equals("mlserver")) {
                args.add("--model_server=mlserver");
            }
            ((ArrayNode) container.get("ports"))
                    .addObject()
                    .put("name", "grpc")
                    .put("containerPort", grpc)
                    .put("protocol", "TCP");
            spec.setAll(pod);
            all.add(runtime);
        }
        return all;
    }

    /** Whether a name is that of a built-in runtime of Nereid's engine. */
    public static boolean isOfEngine(String name) {
        return NAMES.contains(name);
    }

    /**
     * The pod of a server of Nereid, with one container, its probes, rights and volumes; each call returns a new tree.
     *
     * @param image the image of the container
     */
    public static ObjectNode pod(String image) {
        ObjectNode pod = (ObjectNode) read(CONTAINER);
        ((ObjectNode) pod.path("containers").path(0)).put("image", image);
        return pod;
    }

    private static String name(JsonNode runtime) {
        return runtime.path("metadata").path("name").asText();
    }

    private static JsonNode read(String name) {
        try (InputStream file = BuiltInRuntimes.class.getResourceAsStream(name)) {
            return new ObjectMapper().readTree(Objects.requireNonNull(file));
        } catch (IOException e) {
            throw ServingException.internal("the built-in runtimes cannot be read", e);
        }
    }

    /** These runtimes, and the built-in ones that none of them replaces by its name. */
    static List<ServingRuntime> with(List<ServingRuntime> stored) {
        List<ServingRuntime> all = new ArrayList<>(stored);
        for (ServingRuntime one : all()) {
            if (stored.stream().noneMatch(other -> other.name().equals(one.name()))) {
                all.add(one);
            }
        }
        return List.copyOf(all);
    }
}
