// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.process;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.Workload.Port;
import io.nereid.control.core.Workload.Process;
import io.nereid.control.core.Workload.ProcessContainer;
import io.nereid.control.local.workload.Fakes;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ProcessSpecBuilderTest {
    private final PortAllocator ports = new PortAllocator(33_000, 33_100);
    private final List<String> warnings = new ArrayList<>();

    private static ProcessContainer container(
            String name, List<String> arguments, Map<String, String> env, Port... ports) {
        return new ProcessContainer(
                name,
                List.of("serve"),
                arguments,
                env,
                null,
                List.of(ports),
                null,
                null,
                null,
                JsonNodeFactory.instance.objectNode());
    }

    private List<ProcessSpec> starts(Component component, String predictor, ProcessContainer... containers) {
        Process form = new Process(List.of(Fakes.artifact("s3://m")), List.of(containers));
        Workload workload = Fakes.workload("iris-t-1", component, form, Fakes.ONE);
        return ProcessSpecBuilder.build(
                workload,
                form,
                List.of(Path.of("/cache/abc")),
                predictor.isEmpty() ? null : predictor,
                Map.of("PATH", "/bin", "AWS_SECRET_ACCESS_KEY", "hush"),
                ports,
                warnings);
    }

    @Test
    void aPortFlagGetsAFreePort() {
        var start = starts(Component.PREDICTOR, "", container("c", List.of("--http_port=8080"), Map.of()))
                .get(0);

        assertThat(start.httpPort()).isBetween(33_000, 33_100);
        assertThat(start.command()).containsExactly("serve", "--http_port=" + start.httpPort());
        assertThat(start.environment()).containsEntry("PORT", String.valueOf(start.httpPort()));
    }

    @Test
    void theNameOfAPortIsItsProtocol() {
        var start = starts(
                        Component.PREDICTOR,
                        "",
                        container(
                                "c",
                                List.of("$(PORT)", "--grpc_port", "9000"),
                                Map.of(),
                                new Port("grpc", 9000),
                                new Port("http1", 8080)))
                .get(0);

        assertThat(start.httpPort()).isEqualTo(start.ports().get(8080));
        assertThat(start.grpcPort()).isEqualTo(start.ports().get(9000));
        assertThat(start.command())
                .containsExactly(
                        "serve", String.valueOf(start.httpPort()), "--grpc_port", String.valueOf(start.grpcPort()));
    }

    @Test
    void aFixedPortIsUsedOnceAndThenReplacedWithAWarning() {
        starts(Component.PREDICTOR, "", container("c", List.of(), Map.of(), new Port(null, 33_050)));
        assertThat(warnings).isEmpty();

        var second = starts(Component.PREDICTOR, "", container("c", List.of(), Map.of(), new Port(null, 33_050)))
                .get(0);

        assertThat(second.httpPort()).isNotEqualTo(33_050);
        assertThat(warnings).singleElement().asString().contains("port 33050").contains("$(PORT)");
    }

    @Test
    void aTransformerKeepsTheArgumentsOfItsAuthor() {
        var start = starts(
                        Component.TRANSFORMER,
                        "127.0.0.1:4711",
                        container("c", List.of("--predictor_host=other:80", "--model_name", "x"), Map.of()))
                .get(0);

        assertThat(start.command())
                .containsExactly(
                        "serve",
                        "--predictor_host=other:80",
                        "--model_name",
                        "x",
                        "--http_port",
                        String.valueOf(start.httpPort()));
    }

    @Test
    void theClusterNameOfTheOwnPredictorIsReplacedByItsLocalAddress() {
        var start = starts(
                        Component.TRANSFORMER,
                        "127.0.0.1:4711",
                        container("c", List.of("--predictor_host=iris-predictor.default"), Map.of()))
                .get(0);

        assertThat(start.command()).contains("--predictor_host=127.0.0.1:4711");
    }

    @Test
    void containersFindEachOtherWhereTheyAre() {
        starts(Component.PREDICTOR, "", container("x", List.of(), Map.of(), new Port(null, 33_070)));
        var two = starts(
                Component.PREDICTOR,
                "",
                container(
                        "transformer-container",
                        List.of("--predictor_host=localhost:33070", "--http_port=8080"),
                        Map.of()),
                container("kserve-container", List.of(), Map.of(), new Port(null, 33_070)));

        assertThat(two.get(0).command())
                .contains("--predictor_host=localhost:" + two.get(1).httpPort());
        assertThat(two.get(1).httpPort()).isNotEqualTo(33_070);
    }

    @Test
    void filesAreFoundWhereTheyAreAndSecretsStayBehind() {
        var start = starts(
                        Component.PREDICTOR,
                        "",
                        container(
                                "c",
                                List.of("--dir=/mnt/models/a"),
                                Map.of("STORAGE_URI", "s3://m", "X", "/mnt/modelsx")))
                .get(0);

        assertThat(start.command()).contains("--dir=/cache/abc/a");
        assertThat(start.environment())
                .containsEntry("MODEL_DIR", "/cache/abc")
                .containsEntry("STORAGE_URI", "/cache/abc")
                .containsEntry("X", "/mnt/modelsx")
                .containsEntry("INFERENCE_SERVICE_NAME", "iris")
                .containsEntry("PATH", "/bin")
                .doesNotContainKey("AWS_SECRET_ACCESS_KEY");
    }

    @Test
    void variablesReferToEachOtherButNotForEver() {
        assertThat(ProcessSpecBuilder.expand("$(A)", Map.of("A", "$(B)", "B", "x"), 8))
                .isEqualTo("x");
        assertThat(ProcessSpecBuilder.expand("$(A)", Map.of("A", "$(A)"), 8)).isEqualTo("$(A)");
        assertThat(ProcessSpecBuilder.expand("$$(A) $(C)", Map.of("A", "1"), 8)).isEqualTo("$(A) $(C)");
    }
}
