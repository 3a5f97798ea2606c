// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.app.client.ClientOptions;
import io.nereid.app.client.ServerClient;
import io.nereid.app.connection.ServerAddress;
import io.nereid.app.perf.input.ModelSignature;
import io.nereid.app.perf.input.RequestEncoder;
import io.nereid.app.perf.input.RequestSample;
import io.nereid.app.perf.load.GrpcTarget;
import io.nereid.app.perf.load.InProcessTarget;
import io.nereid.app.perf.load.LoadTarget;
import io.nereid.app.perf.load.RestTarget;
import io.nereid.app.perf.load.ServerTimes;
import io.nereid.app.plugins.InstalledPlugins;
import io.nereid.app.text.DurationConverter;
import io.nereid.app.text.ProgressPrinter;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.proxy.PooledUpstreamClient;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.Supplier;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;

/** The options that say which model is called, and how. Set by picocli; confined to one thread. */
@SuppressWarnings("NullAway.Init") // options are set by picocli
public final class TargetOptions {
    private static final long LARGEST_RESPONSE = 1L << 30;

    /** How requests reach the model. */
    enum Protocol {
        REST,
        GRPC,
        IN_PROCESS;

        @Override
        public String toString() {
            return switch (this) {
                case REST -> "rest";
                case GRPC -> "grpc";
                case IN_PROCESS -> "in-process";
            };
        }
    }

    /** How tensors are written in REST requests. */
    enum Encoding {
        BINARY,
        JSON;

        @Override
        public String toString() {
            return this == BINARY ? "binary" : "json";
        }
    }

    @Option(
            names = {"--protocol", "-i"},
            paramLabel = "PROTOCOL",
            defaultValue = "rest",
            description =
                    "rest, grpc, or in-process, which loads the model in this process and calls it without a network"
                            + " (default: ${DEFAULT-VALUE}).")
    private Protocol protocol;

    @Option(
            names = "--encoding",
            paramLabel = "ENCODING",
            defaultValue = "binary",
            description = "Tensors of REST requests: binary, behind the JSON, or json (default: ${DEFAULT-VALUE}).")
    private Encoding encoding;

    @Option(
            names = {"--version-of-model", "--model-version"},
            paramLabel = "N",
            description = "The version; the latest by default.")
    private @Nullable String version;

    @Option(
            names = "--grpc-url",
            paramLabel = "URL",
            description =
                    "The port of gRPC, where it is not that of --url, from which metadata and statistics are read.")
    private @Nullable String grpcUrl;

    @Option(
            names = "--model-repository",
            paramLabel = "PATH",
            description = "With --protocol in-process: a repository, a model's directory or a model file.")
    private @Nullable Path repository;

    @Option(
            names = "--timeout",
            paramLabel = "TIME",
            defaultValue = "1m",
            converter = DurationConverter.class,
            description = "Time limit of a request, which fails then (default: ${DEFAULT-VALUE}).")
    private String timeout;

    @Mixin
    private ClientOptions server;

    /** A client of the server that has the model; null with a model of this process. */
    public @Nullable ServerClient client(CommandSpec spec) {
        return protocol == Protocol.IN_PROCESS ? null : server.client(spec);
    }

    /**
     * A model that can be called. The holder closes the target.
     *
     * @param shared whether the server is on this machine, and takes its cores from the load
     */
    public record Opened(
            LoadTarget target, String version, String where, String protocol, boolean shared, int batchSize) {}

    /** Checks what one option alone does not show. */
    public void check(OptionChecks checks) {
        if ((protocol == Protocol.IN_PROCESS) != (repository != null)) {
            throw checks.wrong(
                    repository == null
                            ? "--protocol in-process needs the model (expected: --model-repository PATH)"
                            : "--model-repository '" + repository + "' is for --protocol in-process, which is "
                                    + protocol);
        }
        if (grpcUrl != null && protocol != Protocol.GRPC) {
            throw checks.wrong("--grpc-url '" + grpcUrl + "' is for --protocol grpc, which is " + protocol);
        }
        if (encoding == Encoding.JSON && protocol != Protocol.REST) {
            throw checks.wrong("--encoding json is for --protocol rest, which is " + protocol);
        }
        if (protocol == Protocol.IN_PROCESS && version != null && !version.matches("[0-9]{1,18}")) {
            throw checks.wrong("--version-of-model '" + version + "' (expected: a number)");
        }
        if (Units.duration(timeout).isZero()) {
            throw checks.wrong("--timeout " + timeout + " (expected: more than 0)");
        }
    }

    /**
     * Opens the model.
     *
     * @param inFlight the most requests at the same time
     */
    public Opened open(String model, InputOptions inputs, int inFlight, CommandSpec spec) {
        return protocol == Protocol.IN_PROCESS
                ? ProgressPrinter.during("loading " + model, spec.commandLine().getErr(), () -> load(model, inputs))
                : connect(model, inputs, inFlight, server.client(spec));
    }

    private Opened load(String model, InputOptions inputs) {
        Path from = java.util.Objects.requireNonNull(repository);
        InProcessTarget target = new InProcessTarget(
                from,
                model,
                version == null ? -1 : Long.parseLong(version),
                InstalledPlugins.load().backends());
        try {
            target.use(inputs.samples(target.signature()));
            return new Opened(
                    target, Long.toString(target.version()), from.toString(), "in-process", false, inputs.batchSize());
        } catch (RuntimeException e) {
            target.close();
            throw e;
        }
    }

    private Opened connect(String model, InputOptions inputs, int inFlight, ServerClient client) {
        String path = "/v2/models/" + ServerClient.segment(model)
                + (version == null ? "" : "/versions/" + ServerClient.segment(version));
        JsonNode metadata = client.get(path);
        List<RequestSample> samples =
                inputs.samples(ModelSignature.of(metadata, optional(client, path + "/config", node -> node)));
        Supplier<@Nullable ServerTimes> statistics = () -> optional(client, path + "/stats", ServerTimes::of);
        List<Header> headers = new ArrayList<>();
        String token = client.connection().token();
        if (!token.isEmpty()) {
            headers.add(new Header("authorization", "Bearer " + token));
        }
        String url = client.connection().server().url();
        Duration limit = Units.duration(timeout);
        ForwardOptions terms = new ForwardOptions(limit, LARGEST_RESPONSE, List.of());
        String called = protocol == Protocol.GRPC && grpcUrl != null
                ? ServerAddress.of(grpcUrl).url()
                : url;
        SSLContext context = client.connection().context();
        PooledUpstreamClient http = new PooledUpstreamClient(new PooledUpstreamClient.Options(
                null,
                PooledUpstreamClient.Options.DEFAULT.connectTimeout(),
                PooledUpstreamClient.Options.DEFAULT.idleTimeout(),
                // each event loop has its share of them, and any may get all requests
                Math.multiplyExact(inFlight, Math.max(1, Runtime.getRuntime().availableProcessors())),
                Clock.system(),
                context == null ? PooledUpstreamClient.Trust.JVM : PooledUpstreamClient.Trust.of(context)));
        LoadTarget target = protocol == Protocol.GRPC
                ? new GrpcTarget(
                        http,
                        called,
                        samples.stream()
                                .map(sample -> RequestEncoder.grpc(model, version == null ? "" : version, sample))
                                .toList(),
                        headers,
                        terms,
                        statistics)
                : new RestTarget(
                        http,
                        url + path + "/infer",
                        samples.stream()
                                .map(encoding == Encoding.JSON ? RequestEncoder::json : RequestEncoder::binary)
                                .toList(),
                        headers,
                        terms,
                        statistics);
        return new Opened(
                target,
                version == null ? latest(metadata) : version,
                called,
                protocol == Protocol.GRPC
                        ? "grpc"
                        : encoding == Encoding.JSON ? "rest, JSON tensors" : "rest, binary tensors",
                ServerAddress.of(called).isThisMachine(),
                inputs.batchSize());
    }

    private static String latest(JsonNode metadata) {
        String latest = "";
        for (JsonNode each : metadata.path("versions")) {
            latest = each.asText();
        }
        return latest;
    }

    /** Reads a document that servers other than Nereid and Triton may not have; null without it. */
    private static <T> @Nullable T optional(ServerClient client, String path, Function<JsonNode, T> read) {
        try {
            return read.apply(client.get(path));
        } catch (ServingException e) {
            return null;
        }
    }
}
