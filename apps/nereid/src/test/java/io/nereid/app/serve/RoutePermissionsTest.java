// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.access.AccessControl;
import io.nereid.access.AccessOptions;
import io.nereid.app.process.Logging;
import io.nereid.base.Clock;
import io.nereid.base.access.Operation;
import io.nereid.base.access.OperationSelector;
import io.nereid.base.access.Permission;
import io.nereid.engine.options.EngineOptions;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.tensor.ByteBudget;
import io.nereid.tracing.TraceOptions;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.logging.Level;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The table of routes and permissions in docs/SECURITY-MODEL.md is that of the server. With {@code -Ddocs.write=true} the
 * test writes it.
 */
class RoutePermissionsTest {
    private static final String BEGIN = "<!-- routes: RoutePermissionsTest -->\n";
    private static final String END = "<!-- end of routes -->\n";

    @TempDir
    Path dir;

    private static Path page() {
        Path root = Path.of("").toAbsolutePath();
        while (!Files.exists(root.resolve("mvnw"))) {
            root = root.getParent();
        }
        return root.resolve("docs/SECURITY-MODEL.md");
    }

    private List<ProtocolCodec> codecs() throws IOException {
        NereidServer server = new NereidServer(
                EngineOptions.builder(List.of(Files.createDirectories(dir.resolve("models"))))
                        .deviceThreads(1)
                        .scratch(dir.resolve("scratch"))
                        .build(),
                ServerOptions.builder().listen("127.0.0.1", 0),
                new ByteBudget(1 << 20),
                V2Options.defaults("test", 1 << 20),
                v1 -> {},
                TraceOptions.OFF,
                Logging.configure(Logging.Format.TEXT, Level.OFF),
                new AccessControl(AccessOptions.none(Clock.system())),
                new NereidServer.ClientRules(true, null, true, List.of(), () -> "[]", null),
                null);
        List<ProtocolCodec> codecs = server.codecs();
        boolean unused = server.stop(Duration.ofSeconds(1));
        return codecs;
    }

    private static String row(String route, OperationSelector operations) {
        String permission = operations instanceof Operation operation
                ? "`" + operation.permission().configName() + "`"
                : "by the call: see below";
        return "| `" + route + "` | " + permission + " |\n";
    }

    @Test
    void everyRouteAndMethodIsInTheTableWithItsPermission() throws IOException {
        StringBuilder table = new StringBuilder("\n| route or method | permission |\n|---|---|\n");
        Set<String> rows = new TreeSet<>();
        for (ProtocolCodec codec : codecs()) {
            for (HttpRoute route : codec.httpRoutes()) {
                assertThat(route.operations()).as(route.template()).isNotNull();
                rows.add(row(route.method() + " " + route.template(), route.operations()));
            }
            for (GrpcMethod method : codec.grpcMethods()) {
                assertThat(method.operations()).as(method.path()).isNotNull();
                rows.add(row("gRPC " + method.path(), method.operations()));
            }
        }
        assertThat(rows).hasSizeGreaterThan(70);
        rows.forEach(table::append);
        table.append('\n');
        String text = Files.readString(page());
        int begin = text.indexOf(BEGIN) + BEGIN.length();
        int end = text.indexOf(END);
        if (Boolean.getBoolean("docs.write")) {
            Files.writeString(page(), text.substring(0, begin) + table + text.substring(end));
        } else {
            assertThat(text.substring(begin, end))
                    .as("docs/SECURITY-MODEL.md; -Ddocs.write=true writes the table")
                    .isEqualTo(table.toString());
        }
        for (Permission permission : Permission.values()) {
            assertThat(text).contains("| `" + permission.configName() + "` |");
        }
    }

    /** What a service in a process of its own is asked for is known by the path. */
    @ParameterizedTest
    @CsvSource({
        "POST, /v1/models/iris:predict, INFERENCE",
        "GET, /v1/models/iris, METADATA",
        "GET, /openapi.json, METADATA",
        "GET, /v2/models/iris/openapi.json, METADATA",
        "GET, /v2/models/iris/requests/slow, STATISTICS",
        "POST, /v2/repository/models/iris/load, MODEL_CONTROL",
        "POST, /v2/repository/index, REPOSITORY_INDEX",
        "POST, /v2%2Frepository/models/iris/load, MODEL_CONTROL",
        "POST, /v2/./repository/models/iris/load, MODEL_CONTROL",
        "POST, //v2//repository/models/iris/load, MODEL_CONTROL",
        "POST, /x/../v2/repository/models/iris/load, MODEL_CONTROL",
        "POST, /v2/%72epository/models/iris/load, MODEL_CONTROL",
        "POST, /v2/%2572epository/models/iris/load, MODEL_CONTROL",
        "POST, /v2/logging, CONFIGURE_LOGGING",
        "GET, /v2/logging, LOGGING",
        "POST, /v2/models/iris/trace/setting, CONFIGURE_TRACE",
        "POST, /v2/systemsharedmemory/region/x/register, SHARED_MEMORY",
        "POST, /admin/model-config, MODEL_CONTROL",
        "GET, /metrics, METRICS",
        "POST, /inference.GRPCInferenceService/RepositoryModelLoad, MODEL_CONTROL",
        "POST, /inference.GRPCInferenceService/SystemSharedMemoryRegister, SHARED_MEMORY",
        "POST, /inference.GRPCInferenceService/SomethingNew, MODEL_CONTROL",
        "POST, /tensorflow.serving.ModelService/HandleReloadConfigRequest, MODEL_CONTROL",
        "POST, /tensorflow.serving.PredictionService/Predict, INFERENCE",
        "POST, /invocations, INFERENCE",
        "POST, /v1/embeddings, INFERENCE",
        "POST, /openai/v1/rerank, INFERENCE",
        "GET, /openai/v1/models, METADATA",
    })
    void aRelayedCallIsKnownByItsPath(String method, String path, Operation operation) {
        assertThat(Operation.ofPath(method, path)).isEqualTo(operation);
    }

    @Test
    void namesOfPermissionsAreThoseOfTheirConstants() {
        for (Permission permission : Permission.values()) {
            assertThat(permission.configName())
                    .isEqualTo(permission.name().toLowerCase(Locale.ROOT).replace('_', '-'));
        }
    }
}
