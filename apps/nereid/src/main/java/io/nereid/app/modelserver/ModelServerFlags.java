// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.modelserver;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import io.nereid.app.controlplane.HubDownload;
import io.nereid.app.plugins.InstalledPlugins;
import io.nereid.app.process.TerminationLog;
import io.nereid.app.text.DownloadProgress;
import io.nereid.app.text.DurationConverter;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import io.nereid.control.core.Workload;
import io.nereid.control.local.ServedModel;
import io.nereid.storage.Storage;
import io.nereid.storage.request.StorageLease;
import io.nereid.storage.request.StorageOptions;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.UnmatchedArgumentException;

/**
 * The options of {@code nereid serve --model_dir}, which serves one folder as the servers of KServe's runtimes do.
 * Confined to the start.
 */
@SuppressWarnings("NullAway.Init") // options are set by picocli
public final class ModelServerFlags {
    private static final Logger LOG = LoggerFactory.getLogger(ModelServerFlags.class);
    private static final Pattern HUB_MODEL = Pattern.compile("[A-Za-z0-9][\\w.-]*/[A-Za-z0-9][\\w.-]*");
    private static final int BATCH_SIZE = 32;
    private static final int BATCH_MILLIS = 5000;

    @Option(
            names = "--model_dir",
            paramLabel = "DIR",
            description = "Serve the model in this directory under the name --model_name, as the servers of KServe's"
                    + " runtimes do: a model file, version directories, or a directory for each of several models.")
    @Nullable Path modelDir;

    @Option(
            names = "--model_id",
            paramLabel = "OWNER/MODEL",
            description =
                    "Serve this model of the Hugging Face Hub in place of --model_dir, as KServe's Hugging Face server"
                            + " does; HF_ENDPOINT and HF_TOKEN apply.")
    @Nullable String modelId;

    @Option(
            names = "--model_revision",
            paramLabel = "REVISION",
            defaultValue = "",
            description = "Branch, tag or commit of --model_id (default: main).")
    String modelRevision;

    @Option(
            names = "--model_format",
            paramLabel = "FORMAT",
            defaultValue = "",
            description = "Format of the model in --model_dir, such as sklearn (default: by its files).")
    String modelFormat;

    @Option(
            names = "--model_layout",
            paramLabel = "LAYOUT",
            defaultValue = "",
            description =
                    "repository: --model_dir has a directory for each model, named as clients call it, unless it is"
                            + " a model itself.")
    String modelLayout;

    @Option(
            names = "--model_server",
            paramLabel = "SERVER",
            defaultValue = "",
            description =
                    "The server whose names of outputs the model in --model_dir has: kserve (output-0) or mlserver"
                            + " (predict) (default: kserve, unless there are variables of MLServer).")
    String modelServer;

    @Option(names = "--http_port", paramLabel = "PORT", description = "The same as --port.")
    public @Nullable Integer httpPort;

    @Option(names = "--grpc_port", paramLabel = "PORT", description = "The same as --grpc-port.")
    public @Nullable Integer grpcPort;

    @Option(
            converter = DurationConverter.class,
            names = "--grace-period",
            paramLabel = "TIME",
            defaultValue = "0s",
            description = "How long to serve as before after SIGTERM, while others still send requests (default:"
                    + " ${DEFAULT-VALUE}).")
    String gracePeriod;

    /** Whether there is no model, and hence no request to wait for. */
    private volatile boolean hopeless;

    @Option(
            names = "--max-batchsize",
            paramLabel = "N",
            description = "Combine requests for --model_dir up to this number of rows, as KServe's batcher does.")
    @Nullable Integer maxBatchSize;

    @Option(
            names = "--max-latency",
            paramLabel = "MS",
            description = "How long the first request of a batch waits for others, in milliseconds (default: 5000 with"
                    + " --max-batchsize).")
    @Nullable Integer maxLatency;

    @Option(
            names = "--payload-log",
            paramLabel = "JSON",
            description =
                    "Log the requests for --model_dir as the logger of an InferenceService does: an object with url,"
                            + " mode, the other fields of the logger, and the service that events name.")
    @Nullable String payloadLog;

    /** The log of requests and responses; null for none. */
    public @Nullable String payloadLog() {
        return payloadLog;
    }

    /**
     * The model of {@code --model_dir}; null without it. Why it cannot be served becomes the reason why the container
     * ended.
     *
     * @param name the name that clients use
     * @param others options that are not this server's: errors without {@code --model_dir}, else warnings, since services
     *     have arguments for KServe's servers
     * @param further whether other models are to be served as well
     * @param storage where a model of the Hub is kept
     * @throws UnmatchedArgumentException for unknown options without {@code --model_dir}
     * @throws ServingException INVALID_ARGUMENT, NOT_FOUND or FAILED_PRECONDITION for what cannot be served
     */
    public @Nullable ServedModel served(
            CommandSpec spec, String name, List<String> others, boolean further, Supplier<StorageOptions> storage) {
        if (modelDir == null && modelId == null) {
            if (!others.isEmpty()) {
                throw new UnmatchedArgumentException(spec.commandLine(), others);
            }
            return null;
        }
        if (further) {
            throw ServingException.invalidArgument(
                    (modelId == null ? "--model_dir" : "--model_id")
                            + " excludes --control, --model-repository, --model-store, --model_config_file and"
                            + " --model_base_path (expected: one of them)",
                    "leave it out to serve repositories");
        }
        try {
            String id = modelId;
            if (id != null) {
                download(id, storage.get());
            }
            return model(name, others, System.getenv());
        } catch (ServingException e) {
            TerminationLog.write(null, e.describe());
            throw e;
        }
    }

    /** Downloads the model of the Hub, which takes the place of the folder. Blocks. */
    private void download(String id, StorageOptions options) {
        if (!HUB_MODEL.matcher(id).matches()) {
            throw ServingException.invalidArgument(
                    "--model_id is '" + id + "' (expected: OWNER/MODEL of the Hugging Face Hub)",
                    "correct it, or name a folder by --model_dir");
        }
        String uri = "hf://" + id + (modelRevision.isEmpty() ? "" : ":" + modelRevision);
        LOG.info("fetching {}", uri);
        Storage storage = new Storage(options, Clock.system(), InstalledPlugins.loadStorageProviders());
        try {
            // Neither the storage nor the lease is closed: the files are needed until the process ends.
            StorageLease lease = HubDownload.fetch(
                            storage, uri, Map.of(), new DownloadProgress(uri, LOG::info, Clock.system()))
                    .toCompletableFuture()
                    .join();
            modelDir = lease.path();
            modelFormat = modelFormat.isEmpty() ? "huggingface" : modelFormat;
        } catch (CompletionException e) {
            storage.close();
            throw ServingException.from(e.getCause() == null ? e : e.getCause());
        }
    }

    /** The reason why the model cannot be loaded, which becomes the reason why the container ended. */
    public ServingException failed(ExecutionException e) {
        hopeless = true;
        ServingException reason = ServingException.from(e.getCause() == null ? e : e.getCause());
        TerminationLog.write(null, reason.getMessage());
        return reason;
    }

    /**
     * Waits for the end of the grace period, while requests are served. Blocks.
     *
     * @param begin run first: what lets clients know that the server is about to end
     */
    public void grace(Runnable begin) {
        begin.run();
        try {
            long millis = hopeless ? 0 : Units.duration(gracePeriod).toMillis();
            boolean unused = new CountDownLatch(1).await(millis, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /**
     * Decides how the folder is served. Reads it.
     *
     * @param name the name that clients use
     * @param others arguments of other servers, which have no effect and become warnings
     * @param environment the variables of the process
     * @throws ServingException INVALID_ARGUMENT, NOT_FOUND or FAILED_PRECONDITION for what cannot be served
     */
    ServedModel model(String name, List<String> others, Map<String, String> environment) {
        Path directory = Objects.requireNonNull(modelDir).toAbsolutePath().normalize();
        if (!Files.exists(directory)) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "there is no '" + directory + "', which --model_dir names",
                    "download or mount the model there");
        }
        if (!modelLayout.isEmpty() && !modelLayout.equals("repository")) {
            throw ServingException.invalidArgument(
                    "--model_layout is '" + modelLayout + "' (expected: repository)",
                    "leave it out for a single model");
        }
        if (!List.of("", "kserve", "mlserver").contains(modelServer)) {
            throw ServingException.invalidArgument(
                    "--model_server is '" + modelServer + "' (expected: kserve or mlserver)",
                    "leave it out for the names of KServe's own servers");
        }
        List<String> arguments = new ArrayList<>(List.of("--model_name=" + name, "--model_dir=" + directory));
        if (!modelServer.isEmpty()) {
            arguments.add("--model_server=" + modelServer);
        }
        if (!modelLayout.isEmpty()) {
            arguments.add("--model_layout=" + modelLayout);
        }
        if (modelId != null) {
            arguments.add("--model_id=" + modelId);
        }
        if (!modelRevision.isEmpty()) {
            arguments.add("--model_revision=" + modelRevision);
        }
        arguments.addAll(others);
        return served(name, directory, modelFormat, arguments, environment, batcher());
    }

    /**
     * Decides how a folder is served as KServe's servers do. Reads it.
     *
     * @param format empty to determine it by the files
     * @throws ServingException INVALID_ARGUMENT or FAILED_PRECONDITION for what cannot be served
     */
    static ServedModel served(
            String name,
            Path directory,
            String format,
            List<String> arguments,
            Map<String, String> environment,
            Workload.@Nullable Batcher batcher) {
        Map<String, String> variables = new HashMap<>();
        environment.forEach((variable, value) -> {
            if (variable.startsWith("MLSERVER_") || variable.equals("PREDICT_PROBA")) {
                variables.put(variable, value);
            }
        });
        variables.remove("MLSERVER_MODEL_URI"); // the folder is given
        Workload.Artifact artifact =
                new Workload.Artifact(directory.toUri().toString(), directory.toString(), null, Map.of(), null, null);
        Workload.Model form = new Workload.Model(
                List.of(artifact), format, null, "v2", "", arguments, variables, JsonNodeFactory.instance.objectNode());
        Workload workload = new Workload(
                "",
                name,
                Workload.Component.PREDICTOR,
                name,
                name,
                form,
                new Workload.Scaling(1, 1, "concurrency", null, "none", Map.of()),
                0,
                Duration.ZERO,
                null,
                batcher,
                Map.of(),
                Map.of());
        return ServedModel.of(workload, directory);
    }

    private Workload.@Nullable Batcher batcher() {
        if (maxBatchSize == null && maxLatency == null) {
            return null;
        }
        int size = maxBatchSize == null ? BATCH_SIZE : maxBatchSize;
        int millis = maxLatency == null ? BATCH_MILLIS : maxLatency;
        if (size < 1 || millis < 0) {
            throw ServingException.invalidArgument("--max-batchsize is " + size + " and --max-latency is " + millis
                    + " (expected: at least 1, and no negative time)");
        }
        return new Workload.Batcher(size, Duration.ofMillis(millis));
    }
}
