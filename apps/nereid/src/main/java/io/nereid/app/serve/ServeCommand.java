// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.access.AccessControl;
import io.nereid.access.AccessOptions;
import io.nereid.access.audit.AuditLog;
import io.nereid.app.access.AccessFlags;
import io.nereid.app.access.TlsFlags;
import io.nereid.app.config.ServeConfiguration;
import io.nereid.app.controlplane.ControlFlags;
import io.nereid.app.modelserver.ModelServerFlags;
import io.nereid.app.process.CacheDirectory;
import io.nereid.app.process.HangupSignal;
import io.nereid.app.process.Logging;
import io.nereid.app.process.ProgramVersion;
import io.nereid.app.process.Termination;
import io.nereid.app.text.DurationConverter;
import io.nereid.app.text.SizeConverter;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import io.nereid.control.local.ServedModel;
import io.nereid.engine.options.BackendSettings;
import io.nereid.engine.options.EngineOptions;
import io.nereid.json.FloatStyle;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.repository.RepositorySource;
import io.nereid.tensor.ByteBudget;
import io.nereid.transport.RequestMemoryLimit;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.tls.TlsOptions;
import java.io.PrintWriter;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;
import picocli.CommandLine.Unmatched;

/** {@code nereid serve}: runs the server until SIGTERM or SIGINT. */
@Command(
        name = "serve",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        customSynopsis = "nereid serve [OPTIONS] MODELS...",
        description = {
            "Serve the models of one or more directories.",
            "A model repository has a directory per model, each with numbered version directories; a single model's"
                    + " directory or an .onnx file is accepted as well. --model_config_file lists models instead. Every"
                    + " option can also be set as NEREID_<OPTION>."
        })
@SuppressWarnings("NullAway.Init") // options are set by picocli
public final class ServeCommand implements Callable<Integer> {
    enum Mode {
        none,
        poll,
        explicit
    }

    enum Compat {
        triton,
        tfs,
        kserve
    }

    private static final Logger LOG = LoggerFactory.getLogger(ServeCommand.class);
    private static final int DEFAULT_MAX_QUEUE = 10_000;
    private static final Duration DEFAULT_OVERLOAD_TARGET = Duration.ofSeconds(1);
    private static final Duration LEAST_OVERLOAD_TARGET = Duration.ofMillis(10);

    @Parameters(arity = "0..*", paramLabel = "MODELS", description = "Model repositories.")
    private List<Path> models = new ArrayList<>();

    @Option(names = "--model-repository", paramLabel = "DIR", description = "The same as MODELS; may be repeated.")
    private List<Path> moreRepositories = new ArrayList<>();

    @Option(
            names = "--host",
            defaultValue = "127.0.0.1",
            description = "Address to listen on (default: ${DEFAULT-VALUE}).")
    private String host;

    @Option(
            names = "--port",
            defaultValue = "8080",
            description = "Port for HTTP/1.1, HTTP/2 and gRPC; 0 for any free port (default: ${DEFAULT-VALUE}).")
    private int port;

    @Option(names = "--grpc-port", description = "An additional port for gRPC.")
    private Integer grpcPort;

    @Option(names = "--metrics-port", description = "An additional port that serves only /metrics.")
    private Integer metricsPort;

    @Option(
            names = "--compat-ports",
            split = ",",
            paramLabel = "NAME",
            description =
                    "Also listen on the default ports of triton (8000, 8001, 8002), tfs (8500, 8501) or kserve (8081).")
    private List<Compat> compatPorts = new ArrayList<>();

    @Option(
            names = "--model-control-mode",
            description = "poll: apply changes of the repositories; none: read them once; explicit: load only models"
                    + " of --load-model and the API (default: poll). When it is given, clients may load and unload models"
                    + " in the mode explicit only.")
    private @Nullable Mode modelControlMode;

    @Option(
            converter = DurationConverter.class,
            names = "--poll-interval",
            defaultValue = "5s",
            description = "Time between polls (default: ${DEFAULT-VALUE}).")
    private String pollInterval;

    @Option(
            names = "--load-model",
            paramLabel = "NAME",
            description = "Model to load at startup in explicit mode; * for all.")
    private List<String> loadModels = new ArrayList<>();

    @Option(
            converter = DurationConverter.class,
            names = "--drain-timeout",
            defaultValue = "30s",
            description = "Time limit for requests in progress on Ctrl-C or SIGTERM (default: ${DEFAULT-VALUE}).")
    private String drainTimeout;

    @Option(
            converter = SizeConverter.class,
            names = "--max-request-bytes",
            defaultValue = "64MiB",
            description = "Largest HTTP body or gRPC message (default: ${DEFAULT-VALUE}).")
    private String maxRequestBytes;

    @Option(
            converter = SizeConverter.class,
            names = "--request-memory",
            paramLabel = "SIZE",
            description = "Memory limit for request bodies, and for responses that clients do not take; requests beyond"
                    + " it are rejected (default: 1GiB, but at most a third of the heap and of the memory outside the"
                    + " heap that the JVM may use).")
    private String requestMemory;

    @Option(
            names = "--max-connections",
            defaultValue = "0",
            description = "Open connections of clients; further ones are closed at once; 0 to derive the number from"
                    + " the limit on open files (ulimit -n).")
    private int maxConnections;

    @Option(
            converter = SizeConverter.class,
            names = "--model-memory",
            defaultValue = "0B",
            description = "Memory limit for models; 0B for no limit.")
    private String modelMemory;

    @Option(
            names = "--max-queue",
            description = "Queue size per model (default: 10000); also switches --overload-target off.")
    private Integer maxQueue;

    @Option(
            names = "--overload-target",
            paramLabel = "TIME|off",
            description = "While more requests arrive at a model, or at a service with a concurrency limit, than it can"
                    + " serve, refuse those that would take longer, at once and with 503 (default: 1s; off with"
                    + " --max-queue, --model-repository, --model_config_file, --model_base_path and --compat-ports"
                    + " triton or tfs).")
    private String overloadTarget;

    @Option(
            names = "--compute-threads",
            defaultValue = "0",
            description = "Threads that run models; 0 for one per CPU.")
    private int computeThreads;

    @Option(
            names = "--io-threads",
            defaultValue = "0",
            description = "Threads for socket I/O; 0 for a quarter of the CPUs.")
    private int ioThreads;

    @Option(
            names = "--load-threads",
            defaultValue = "4",
            description = "Number of models loaded in parallel (default: ${DEFAULT-VALUE}).")
    private int loadThreads;

    @Option(
            names = "--backend-config",
            paramLabel = "[BACKEND,]KEY=VALUE",
            description = "A setting of a backend for all its models; may be repeated.")
    private List<String> backendConfig = new ArrayList<>();

    @Option(
            names = "--json-floats",
            defaultValue = "widened",
            description = "Format of FP32, FP16 and BF16 values in JSON responses: widened prints 6.800000190734863, as"
                    + " Triton"
                    + " and KServe do; shortest prints 6.8 (default: ${DEFAULT-VALUE}).")
    private FloatStyle jsonFloats;

    @Option(
            names = "--log-format",
            defaultValue = "text",
            description = "text, json, or Triton's default or ISO8601 (default: ${DEFAULT-VALUE}).")
    private Logging.Format logFormat;

    @Option(
            names = "--log-level",
            defaultValue = "INFO",
            description = "SEVERE, WARNING, INFO, FINE … (default: ${DEFAULT-VALUE}).")
    private String logLevel;

    @Option(names = "--access-log", description = "Log every finished request.")
    private boolean accessLog;

    @Mixin
    private TritonFlags triton;

    @Mixin
    private TfServingFlags tfs;

    @Mixin
    private TlsFlags tls;

    @Mixin
    private GrpcTlsFlags grpcTls;

    @Mixin
    private AccessFlags accessFlags;

    @Mixin
    private ClientFlags clientFlags;

    @Mixin
    private ControlFlags control;

    @Mixin
    private ModelServerFlags modelServer;

    /** Options that are not this server's: errors, but for --model_dir, where those of KServe's servers have no effect. */
    @Unmatched
    private List<String> others = new ArrayList<>();

    @Spec
    private CommandSpec spec;

    /** Has no more to do: the entries of the file have become arguments before the command line was parsed. */
    @Option(
            names = "--config",
            paramLabel = "FILE",
            description = "A YAML file with options by their names without dashes, over which flags and the"
                    + " environment win; see nereid config.")
    void config(Path file) {}

    /** Where the arguments come from, for those who look at what is in force. */
    public void configuredBy(ServeConfiguration configuration) {
        clientFlags.configuration = configuration;
    }

    @Override
    public Integer call() throws Exception {
        List<Path> roots = new ArrayList<>(models);
        roots.addAll(moreRepositories);
        roots.addAll(triton.modelStore);
        boolean further = control.control || tfs.lists() || roots.size() > models.size();
        ServedModel served = modelServer.served(spec, tfs.modelName, others, further, control::serversOwn);
        if (served != null) {
            roots.clear(); // values of other servers' options
        }
        List<String> warnings = IgnoredFlags.warnings(spec);
        control.check();
        triton.devices.check();
        control.overloadTarget = overloadTarget();
        control.tls = tls.everywhere();
        control.encrypted = tls.everywhere() != null || tfs.sslConfigFile != null;
        RepositoryRoots repositories =
                RepositoryRoots.of(roots, tfs.lists() || control.loadsByUri() || served != null, triton.keepsServing());
        takeAliases();
        Logging logging = Logging.configure(logFormat, level(logLevel), triton.logFile);
        triton.apply(logging);
        warnings.forEach(LOG::warn);
        Duration drain = Units.duration(drainTimeout);
        int maxBody = (int) Math.min(Integer.MAX_VALUE - 1024, Units.bytes(maxRequestBytes));
        ByteBudget budget = new ByteBudget(requestMemory == null ? RequestMemoryLimit.ofProcess() : requestMemory());
        AccessControl access = new AccessControl(accessOptions());
        NereidServer server = new NereidServer(
                engineOptions(repositories.roots()),
                listen(maxBody, logging, access),
                budget,
                v2(maxBody, served != null),
                tfs::apply,
                triton.trace(),
                logging,
                access,
                clientFlags.rules(
                        modelControlMode == null || modelControlMode == Mode.explicit,
                        triton.allowMetrics,
                        repositories.missing(),
                        control.modelStorage(),
                        spec),
                control.control ? control : null,
                served,
                modelServer.payloadLog(),
                triton.devices);
        HangupSignal.handle(() -> {
            logging.reopen();
            AuditLog audit = access.audit();
            if (audit != null) {
                audit.reopen();
            }
            access.reload();
        });
        PrintWriter out = spec.commandLine().getOut();
        List<InetSocketAddress> opened = tfs.portsAfterModels() ? List.of() : server.listen();
        Termination termination = Termination.install(() -> {
            // A shutdown hook closes the log, perhaps before this one: hence standard error.
            modelServer.grace(server::announceDrain);
            System.err.println(
                    "nereid: draining (readiness is false; up to " + drainTimeout + " for requests in progress)");
            boolean drained = server.stop(drain);
            System.err.println(
                    drained ? "nereid: stopped" : "nereid: stopped; some requests were aborted at the time limit");
            System.err.flush();
            return drained;
        });
        try {
            start(server, opened, served, repositories, access, out);
            termination.started();
        } catch (Exception e) {
            if (!termination.begun()) { // Else the exception is a consequence of the end while models load.
                throw e;
            }
        }
        return termination.await();
    }

    /** Loads the models and reports the addresses. */
    private void start(
            NereidServer server,
            List<InetSocketAddress> opened,
            @Nullable ServedModel served,
            RepositoryRoots repositories,
            AccessControl access,
            PrintWriter out)
            throws Exception {
        boolean portsLast = tfs.portsAfterModels();
        List<InetSocketAddress> addresses = opened;
        StartupReport report = new StartupReport(server.engine(), out, served != null);
        CompletableFuture<Void> loaded = server.load().toCompletableFuture();
        if (portsLast) {
            awaitModels(loaded, report, served != null);
            addresses = server.listen();
        }
        int controlPort = server.control(addresses);
        awaitModels(loaded, report, served != null);
        if (tfs.modelConfigFile != null && tfs.modelConfigFilePollWaitSeconds > 0) {
            server.follow(tfs.modelConfigFile, Duration.ofSeconds(tfs.modelConfigFilePollWaitSeconds));
        }
        if (!control.control && !tfs.lists() && !triton.keepsServing()) {
            report.checkFiles(repositories.roots());
        }
        boolean encrypted = tls.everywhere() != null || tfs.sslConfigFile != null;
        report.print(host, addresses, encrypted, clientFlags.console == ClientFlags.Switch.on);
        report.printAccess(accessFlags.openManagement, accessFlags.hasCredentials(), server.isLocal());
        if (controlPort != 0) {
            String at = control.address + ":" + controlPort;
            boolean open = server.isLocal() && access.trustsLocalCallers() || accessFlags.openManagement;
            out.println("control API on http://" + at + " and https://" + at
                    + "; create resources with: nereid apply -f FILE, or "
                    + (open
                            ? "kubectl --server=http://" + at + " apply -f FILE"
                            : "nereid kubeconfig -o FILE and kubectl --kubeconfig FILE apply -f FILE"));
            out.flush();
        }
        if (Boolean.TRUE.equals(triton.exitOnError) && report.failures() > 0) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "failed to load all models",
                    "see the table above; --exit-on-error=false serves the other models");
        }
    }

    /**
     * Waits until every model is available or has failed.
     *
     * @param own whether there is only the model of --model_dir, whose failure is that of the program
     * @throws ServingException UNAVAILABLE if the ports are to open when all models serve, and one of a list does not
     */
    private void awaitModels(CompletableFuture<Void> loading, StartupReport report, boolean own) throws Exception {
        try {
            report.await(loading);
        } catch (ExecutionException e) {
            throw own ? modelServer.failed(e) : e;
        }
        if (tfs.portsAfterModels() && tfs.lists() && !triton.keepsServing()) {
            report.awaitAll(tfs.fileSystemPollWaitSeconds > 0);
        }
    }

    private AccessOptions accessOptions() {
        Set<String> names = new LinkedHashSet<>();
        if (control.control) {
            names.addAll(control.hosts());
        }
        AccessOptions options =
                accessFlags.options(names, triton.httpRestrictedApi, triton.grpcRestrictedProtocol, Clock.system());
        return control.control ? options.withToken(control.token()) : options;
    }

    /** Applies the aliases of other servers to this server's own options. */
    private void takeAliases() {
        host = triton.address == null ? host : triton.address;
        port = triton.httpPort == null ? port : triton.httpPort;
        port = modelServer.httpPort == null ? port : modelServer.httpPort;
        grpcPort = modelServer.grpcPort == null ? grpcPort : modelServer.grpcPort;
        ioThreads = triton.httpThreadCount == null ? ioThreads : triton.httpThreadCount;
        ioThreads = tfs.restApiNumThreads == null ? ioThreads : tfs.restApiNumThreads;
        loadThreads = triton.modelLoadThreadCount == null ? loadThreads : triton.modelLoadThreadCount;
        // In TensorFlow Serving, 0 means sequential loads on the manager's thread.
        loadThreads = tfs.numLoadThreads == null ? loadThreads : Math.max(1, tfs.numLoadThreads);
        modelMemory = tfs.totalModelMemoryLimitBytes == null ? modelMemory : tfs.totalModelMemoryLimitBytes + "B";
        drainTimeout = triton.exitTimeoutSecs == null ? drainTimeout : triton.exitTimeoutSecs + "s";
        pollInterval = triton.repositoryPollSecs == null ? pollInterval : triton.repositoryPollSecs + "s";
        maxRequestBytes = triton.httpMaxInputSize == null ? maxRequestBytes : triton.httpMaxInputSize + "B";
    }

    private EngineOptions engineOptions(List<Path> roots) {
        Mode mode = modelControlMode == null ? Mode.poll : modelControlMode;
        RepositorySource.Mode repositoryMode = switch (mode) {
            case none -> RepositorySource.Mode.NONE;
            case poll -> RepositorySource.Mode.POLL;
            case explicit -> RepositorySource.Mode.EXPLICIT;
        };
        if (!loadModels.isEmpty() && mode != Mode.explicit) {
            throw ServingException.invalidArgument(
                    "--load-model requires --model-control-mode explicit, which is " + mode,
                    "add --model-control-mode explicit, or omit --load-model to load every model");
        }
        Map<String, Map<String, String>> settings = BackendSettings.parse(backendConfig);
        EngineOptions.Builder engine = EngineOptions.builder(roots)
                .repository(RepositorySource.Options.DEFAULT
                        .withMode(repositoryMode)
                        .withPollInterval(Units.duration(pollInterval))
                        .withStartModels(loadModels)
                        .withConfigName(triton.modelConfigName))
                .loadThreads(loadThreads)
                .maxQueueSize(maxQueue == null ? DEFAULT_MAX_QUEUE : maxQueue)
                .overloadTarget(overloadTarget())
                .splitUnconfigured(!ofOtherServer())
                .memoryLimitBytes(Units.bytes(modelMemory))
                .scratch(CacheDirectory.directory());
        if (computeThreads > 0) {
            engine.deviceThreads(computeThreads);
        }
        triton.apply(engine);
        tfs.apply(engine, settings);
        return engine.backendSettings(settings).build();
    }

    /** The target of the admission under overload; zero for none, as the servers have it whose options are used. */
    Duration overloadTarget() {
        if (overloadTarget == null) {
            return maxQueue != null || ofOtherServer() ? Duration.ZERO : DEFAULT_OVERLOAD_TARGET;
        }
        if (overloadTarget.equals("off")) {
            return Duration.ZERO;
        }
        Duration target = Units.duration(overloadTarget);
        if (target.compareTo(LEAST_OVERLOAD_TARGET) < 0) {
            throw ServingException.invalidArgument(
                    "--overload-target " + overloadTarget + " is too short (expected: 10ms or more, or off)",
                    "it is the time that the slowest request should take, with its run");
        }
        return target;
    }

    /** Whether the command line is one of tritonserver or tensorflow_model_server, whose limits it then has as well. */
    private boolean ofOtherServer() {
        return !moreRepositories.isEmpty()
                || !triton.modelStore.isEmpty()
                || tfs.lists()
                || compatPorts.contains(Compat.triton)
                || compatPorts.contains(Compat.tfs);
    }

    /** @param kserve whether the command line is one of KServe's servers */
    private V2Options v2(int maxBody, boolean kserve) {
        V2Options.Builder v2 = V2Options.builder(ProgramVersion.number(), maxBody)
                .floatStyle(jsonFloats)
                .furtherServices(NereidServer.V1_SERVICES);
        triton.apply(v2);
        v2.healthBodies(kserve || !isTritonCommand());
        return v2.modelUpload(clientFlags.modelUpload).build();
    }

    /** Whether the command line has an option that only {@code tritonserver} has, or its ports. */
    private boolean isTritonCommand() {
        return !moreRepositories.isEmpty()
                || compatPorts.contains(Compat.triton)
                || spec.commandLine().getParseResult().matchedOptions().stream()
                        .anyMatch(option -> IgnoredFlags.isTriton(option) || TritonFlags.has(option));
    }

    private static int port(String option, int number) {
        if (number < 0 || number > 65_535) {
            throw ServingException.invalidArgument(option + " " + number + " is not a port (expected 0 to 65535)");
        }
        return number;
    }

    private ServerOptions.Builder listen(int maxBody, Logging logging, AccessControl access) {
        TlsOptions everywhere = tls.everywhere();
        TlsOptions grpc = grpcTls.grpc();
        TlsOptions main = tfs.sslConfigFile == null ? everywhere : TfServingSslConfig.tls(tfs.sslConfigFile);
        ServerOptions.Builder listen = ServerOptions.builder()
                .listen(
                        host,
                        port("--port", port),
                        ServerOptions.Purpose.ALL,
                        main == null && grpcPort == null ? grpc : main)
                .eventLoops(ioThreads)
                .corsOrigins(accessFlags.corsOrigins)
                .maxConnections(maxConnections)
                .maxBodyBytes(maxBody)
                .compressMessages(triton.grpcCompression != TritonFlags.CompressionLevel.none)
                .maxMessageBytes(maxBody);
        if (grpcPort != null) {
            listen.listen(host, port("--grpc-port", grpcPort), ServerOptions.Purpose.ALL, grpc == null ? main : grpc);
        }
        if (tfs.restApiPort != null && tfs.restApiPort != 0) {
            listen.listen(host, port("--rest_api_port", tfs.restApiPort), ServerOptions.Purpose.ALL, everywhere);
        }
        if (tfs.grpcSocketPath != null) {
            listen.listen("unix:" + tfs.grpcSocketPath.toAbsolutePath(), 0);
        }
        if (metricsPort != null && triton.allowMetrics) {
            listen.listen(host, port("--metrics-port", metricsPort), ServerOptions.Purpose.METRICS, everywhere);
        }
        if (compatPorts.contains(Compat.triton) && triton.allowMetrics) {
            listen.listen(host, 8002, ServerOptions.Purpose.METRICS, everywhere);
        }
        for (Compat compat : compatPorts) {
            switch (compat) {
                case triton ->
                    listen.listen(host, 8000, ServerOptions.Purpose.ALL, everywhere)
                            .listen(host, 8001, ServerOptions.Purpose.ALL, grpc == null ? everywhere : grpc);
                case tfs ->
                    listen.listen(host, 8500, ServerOptions.Purpose.ALL, main)
                            .listen(host, 8501, ServerOptions.Purpose.ALL, everywhere);
                case kserve -> listen.listen(host, 8081, ServerOptions.Purpose.ALL, everywhere);
            }
        }
        if (accessLog || access.audit() != null) {
            listen.accessLog(new RequestLogs(accessLog, logging, access.audit(), Clock.system()));
        }
        return listen;
    }

    private long requestMemory() {
        long bytes = Units.bytes(requestMemory);
        if (bytes < 1) {
            throw ServingException.invalidArgument(
                    "--request-memory " + requestMemory + " leaves no memory for requests (expected: at least 1B)");
        }
        return bytes;
    }

    private static Level level(String name) {
        try {
            return Level.parse(name.toUpperCase(java.util.Locale.ROOT));
        } catch (IllegalArgumentException e) {
            throw ServingException.invalidArgument("--log-level '" + name
                    + "' is not a level (expected SEVERE, WARNING, INFO, FINE, FINER or FINEST)");
        }
    }
}
