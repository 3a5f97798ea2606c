// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The desired state of one revision of one component of a service. Immutable; equal workloads need no action of the
 * infrastructure.
 *
 * @param namespace the service's namespace
 * @param service the InferenceService's name
 * @param component the component of the service
 * @param revision the revision's name, unique in the namespace, such as {@code iris-predictor-00002}
 * @param modelName the name that clients use for its model
 * @param form what to run
 * @param scaling the number of replicas
 * @param containerConcurrency maximum number of concurrent requests in one replica; 0 for no limit
 * @param timeout timeout of one request
 * @param logger the request logger, or null
 * @param batcher the request batcher, or null
 * @param labels the labels of service, component and runtime
 * @param annotations the annotations of service, component and runtime
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
    /** The components of a service. */
    public enum Component {
        /** Runs the model. */
        PREDICTOR,
        /** Processes requests before the predictor and responses after it. */
        TRANSFORMER,
        /** Explains the predictor's predictions. */
        EXPLAINER;

        private final String text = name().toLowerCase(Locale.ROOT);

        /** The name in lower case, as in status, labels and host names. */
        public String text() {
            return text;
        }
    }

    /** What to run. */
    public sealed interface Form permits Model, Process, Explainer, Transformer, Pod {}

    /**
     * A model, or a repository of models, in the engine of this process.
     *
     * @param artifacts the files to download
     * @param format the name of the model's format, such as {@code sklearn}; {@code triton} for a repository of models
     * @param formatVersion the version of the format, or null
     * @param protocol the protocol of the service: {@code v1}, {@code v2}, {@code grpc-v1} or {@code grpc-v2}
     * @param runtime the name of the selected runtime
     * @param arguments the arguments of the runtime's container in order, with templates filled in
     * @param environment the container's environment variables with literal values
     * @param limits the container's resources as in the specification
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
     * Child processes of one replica. The first one receives the requests.
     *
     * @param artifacts files that they see at their mount paths
     */
    @SuppressWarnings("JavaLangClash") // always read as Workload.Process
    public record Process(List<Artifact> artifacts, List<ProcessContainer> containers) implements Form {}

    /**
     * An explainer that is built into the server.
     *
     * @param method the method, such as {@code shap}
     * @param settings settings of the method by name, without dashes
     * @param artifacts files that it needs
     */
    public record Explainer(String method, Map<String, String> settings, List<Artifact> artifacts) implements Form {}

    /**
     * A transformer that the server runs: a jar in this process, or a Python file in child processes, depending on the
     * file's type.
     *
     * @param className the transformer's class; null for the only one
     * @param file the jar or Python file among the downloaded ones; null for the default name
     * @param settings settings of the transformer
     * @param artifacts the files to download; the transformer's own first
     */
    public record Transformer(
            @Nullable String className, @Nullable String file, Map<String, String> settings, List<Artifact> artifacts)
            implements Form {}

    /**
     * A pod of a cluster.
     *
     * @param spec its specification, as in the API of Kubernetes; not modified
     * @param httpPort the port for HTTP; 0 when it does not speak it
     * @param grpcPort the port for gRPC; 0 when it does not speak it
     */
    public record Pod(JsonNode spec, int httpPort, int grpcPort) implements Form {}

    /**
     * A child process.
     *
     * @param name the container's name
     * @param command the program and its first arguments
     * @param arguments the further arguments, with templates filled in
     * @param environment environment variables with literal values; values and arguments may refer to others as {@code
     *     $(NAME)}, as in Kubernetes
     * @param environmentSources environment variables from secrets and config maps; they override the server's own
     *     variables, and literal values override them
     * @param workingDirectory the working directory; null for a directory of its own
     * @param ports the ports that it listens on: the first is for HTTP unless another is named {@code http*}; one named
     *     {@code h2c}, {@code grpc} or {@code *-grpc} is for gRPC
     * @param readinessProbe the probe as in the specification; null for a connection to the first port
     * @param livenessProbe the probe as in the specification; null for none
     * @param startupProbe the probe as in the specification; null for none
     * @param resources the resources as in the specification
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
        /** A container whose environment variables all have literal values. */
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
     * A reference to a secret or config map in the service's namespace for environment variables. It is resolved when
     * the process starts, so that plans do not contain secrets.
     *
     * @param variable the variable's name; when {@code key} is null, the prefix of the variables
     * @param kind {@code Secret} or {@code ConfigMap}
     * @param object the name of the secret or config map
     * @param key the key of the value; null for all keys, each of which becomes a variable
     * @param optional whether it may be missing; otherwise the process does not start without it
     */
    public record EnvironmentSource(
            String variable,
            String kind,
            String object,
            @Nullable String key,
            boolean optional) {}

    /** A port that a process listens on. */
    public record Port(@Nullable String name, int number) {}

    /**
     * Files to download.
     *
     * @param uri the storage URI
     * @param mountPath the path at which the service sees them, such as {@code /mnt/models}
     * @param storageKey the entry of the {@code storage-config} secret; null for none
     * @param parameters parameters that override those of the entry
     * @param serviceAccount the service account whose secrets are used; null for the namespace's default
     * @param container the name of the ClusterStorageContainer that the service specifies; null for none
     * @param hub of a model of the Hugging Face Hub that is named by an argument; null for all others
     */
    public record Artifact(
            String uri,
            String mountPath,
            @Nullable String storageKey,
            Map<String, String> parameters,
            @Nullable String serviceAccount,
            @Nullable String container,
            @Nullable HubSettings hub) {
        /** Files that a storage URI names. */
        public Artifact(
                String uri,
                String mountPath,
                @Nullable String storageKey,
                Map<String, String> parameters,
                @Nullable String serviceAccount,
                @Nullable String container) {
            this(uri, mountPath, storageKey, parameters, serviceAccount, container, null);
        }
    }

    /**
     * How a model that the argument {@code --model_id} names is downloaded: of the model's weights one format alone, and with the
     * variables of the predictor's container.
     *
     * @param settings such as {@code HF_ENDPOINT}; they override those of the service account
     * @param sources settings that are in secrets and config maps of the namespace; they override the others
     */
    public record HubSettings(Map<String, String> settings, List<EnvironmentSource> sources) {}

    /**
     * The number of replicas and how it is scaled.
     *
     * @param min minimum number of replicas; 0 allows scale to zero
     * @param max maximum number of replicas; 0 for no limit
     * @param metric {@code concurrency}, {@code rps}, {@code cpu} or {@code memory}
     * @param target target value of the metric per replica; null for the default
     * @param autoscaler {@code kpa} for Knative's pod autoscaler, the default; {@code none} for a fixed number
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
     * The request logger.
     *
     * @param url the sink of the events
     * @param mode {@code all}, {@code request} or {@code response}
     * @param settings the other fields of the specification as submitted
     */
    public record Logger(String url, String mode, JsonNode settings) {}

    /**
     * The request batcher.
     *
     * @param maxBatchSize maximum number of rows in a batch
     * @param maxLatency maximum time that the first request of a batch waits for others
     */
    public record Batcher(int maxBatchSize, Duration maxLatency) {}
}
