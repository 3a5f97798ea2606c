// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Something that runs: one revision of one component of a service. Immutable; two equal ones need nothing done.
 *
 * @param namespace the service's namespace
 * @param service the InferenceService's name
 * @param component which part of the service it is
 * @param revision its own name, unique in the namespace, such as {@code iris-predictor-00002}
 * @param modelName the name that clients use for its model
 * @param form what to run
 * @param scaling how many of it
 * @param containerConcurrency most requests at once in one replica; 0 for no limit
 * @param timeout most time for one request
 * @param logger what is logged of its requests, or null
 * @param batcher how its requests are joined, or null
 * @param labels the labels of service, component and runtime
 * @param annotations likewise
 */
public record Workload(
        String namespace,
        String service,
        Component component,
        String revision,
        String modelName,
        Form form,
        Scaling scaling,
        int containerConcurrency,
        Duration timeout,
        @Nullable Logger logger,
        @Nullable Batcher batcher,
        Map<String, String> labels,
        Map<String, String> annotations) {
    /** The parts of a service. */
    public enum Component {
        /** Runs the model. */
        PREDICTOR,
        /** Works on requests before, and answers after the predictor. */
        TRANSFORMER,
        /** Explains the predictor's answers. */
        EXPLAINER
    }

    /** What to run. */
    public sealed interface Form permits Model, Process, Explainer, Transformer {}

    /**
     * A model, or a repository of models, in the engine of this process.
     *
     * @param artifacts where its files come from
     * @param format the name of the model's format, such as {@code sklearn}; {@code triton} for a repository of models
     * @param formatVersion its version, or null
     * @param protocol the protocol that the service is for: {@code v1}, {@code v2}, {@code grpc-v1} or {@code grpc-v2}
     * @param runtime the name of the runtime that was chosen
     * @param arguments the arguments of the runtime's container after templating, in order
     * @param environment its environment variables that are written out
     * @param limits the container's resources, as in the specification
     */
    public record Model(
            List<Artifact> artifacts,
            String format,
            @Nullable String formatVersion,
            String protocol,
            String runtime,
            List<String> arguments,
            Map<String, String> environment,
            JsonNode limits)
            implements Form {}

    /**
     * Child processes that belong together: the first one answers the requests.
     *
     * @param artifacts files that they find at their mount paths
     */
    @SuppressWarnings("JavaLangClash") // always read as Workload.Process
    public record Process(List<Artifact> artifacts, List<ProcessContainer> containers) implements Form {}

    /**
     * An explainer that comes with the server.
     *
     * @param method its name, such as {@code shap}
     * @param settings its arguments by name, without dashes
     * @param artifacts files that it needs
     */
    public record Explainer(String method, Map<String, String> settings, List<Artifact> artifacts) implements Form {}

    /**
     * Steps before and after the predictor: of a jar, in this process; or of a Python file, in child processes of which the
     * server knows the program. Which of the two it is, the file says.
     *
     * @param className the class of the steps; null for the only one
     * @param file the jar or Python file among the fetched ones; null for the one that is expected
     * @param settings the steps' own
     * @param artifacts where its files come from: its own first
     */
    public record Transformer(
            @Nullable String className, @Nullable String file, Map<String, String> settings, List<Artifact> artifacts)
            implements Form {}

    /**
     * A child process.
     *
     * @param name the container's name
     * @param command program and first arguments
     * @param arguments the rest, after templating
     * @param environment its variables that are written out; values and arguments may name others as {@code $(NAME)}, as in
     *     Kubernetes
     * @param environmentSources its variables that come from secrets and maps; they lie between those and the server's own
     * @param workingDirectory where it starts; null for a directory of its own
     * @param ports what it listens on: the first is for HTTP unless another is named {@code http*}; one named {@code h2c},
     *     {@code grpc} or {@code *-grpc} is for gRPC
     * @param readinessProbe as in the specification; null for a connection to the first port
     * @param livenessProbe likewise; null for none
     * @param startupProbe likewise; null for none
     * @param resources as in the specification
     */
    public record ProcessContainer(
            String name,
            List<String> command,
            List<String> arguments,
            Map<String, String> environment,
            List<EnvironmentSource> environmentSources,
            @Nullable String workingDirectory,
            List<Port> ports,
            @Nullable JsonNode readinessProbe,
            @Nullable JsonNode livenessProbe,
            @Nullable JsonNode startupProbe,
            JsonNode resources) {
        /** A container all of whose variables are written out. */
        public ProcessContainer(
                String name,
                List<String> command,
                List<String> arguments,
                Map<String, String> environment,
                @Nullable String workingDirectory,
                List<Port> ports,
                @Nullable JsonNode readinessProbe,
                @Nullable JsonNode livenessProbe,
                @Nullable JsonNode startupProbe,
                JsonNode resources) {
            this(
                    name,
                    command,
                    arguments,
                    environment,
                    List.of(),
                    workingDirectory,
                    ports,
                    readinessProbe,
                    livenessProbe,
                    startupProbe,
                    resources);
        }
    }

    /**
     * Variables whose values lie elsewhere in the service's namespace, so that plans hold no secrets.
     *
     * @param variable the variable's name; for a whole object ({@code key} is null) what goes before each key
     * @param kind {@code Secret} or {@code ConfigMap}
     * @param object the name of the secret or map
     * @param key the entry; null for all entries, each a variable
     * @param optional whether it may be missing; else the process does not start without it
     */
    public record EnvironmentSource(
            String variable,
            String kind,
            String object,
            @Nullable String key,
            boolean optional) {}

    /** A port that a process listens on by itself. */
    public record Port(@Nullable String name, int number) {}

    /**
     * Files to bring here.
     *
     * @param uri where they are
     * @param mountPath where the service expects them, such as {@code /mnt/models}
     * @param storageKey the entry of the {@code storage-config} secret; null for none
     * @param parameters what overrides the entry
     * @param serviceAccount whose secrets may be used; null for the namespace's default
     * @param container the ClusterStorageContainer named in the service; null for none
     */
    public record Artifact(
            String uri,
            String mountPath,
            @Nullable String storageKey,
            Map<String, String> parameters,
            @Nullable String serviceAccount,
            @Nullable String container) {}

    /**
     * How many replicas.
     *
     * @param min fewest; 0 may scale to zero
     * @param max most; 0 for no limit
     * @param metric {@code concurrency}, {@code rps}, {@code cpu} or {@code memory}
     * @param target of the metric per replica; null for the default
     * @param autoscaler {@code kpa} (the default here), or {@code none} for a fixed number
     * @param settings the {@code autoscaling.knative.dev/…} annotations that apply, by name without the prefix
     */
    public record Scaling(
            int min,
            int max,
            String metric,
            @Nullable Double target,
            String autoscaler,
            Map<String, String> settings) {}

    /**
     * What is logged.
     *
     * @param url where to
     * @param mode {@code all}, {@code request} or {@code response}
     * @param settings everything else of the specification, as written
     */
    public record Logger(String url, String mode, JsonNode settings) {}

    /**
     * How requests are joined.
     *
     * @param maxBatchSize most rows
     * @param maxLatency most time that the first request waits for others
     */
    public record Batcher(int maxBatchSize, Duration maxLatency) {}
}
