// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protocols.v1.common.V1Options;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import io.nereid.spi.Signature;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class RestPathsTest {
    private final FakeEngine engine = new FakeEngine();
    private final FakeClient client = client(V1Options.defaults(Clock.system()));

    private FakeClient client(V1Options options) {
        return new FakeClient(new V1Codec(engine, engine, Runnable::run, options));
    }

    @BeforeEach
    void models() {
        engine.add("m", specs("x"), specs("y"));
        engine.label("m", "stable", 3);
        Signature renamed = new Signature(
                Signature.REGRESS, specs("inputs"), List.of(scalar("outputs")), Map.of("inputs", "tf_example:0"));
        Signature plain = new Signature(
                Signature.PREDICT,
                List.of(new TensorSpec("x", DataType.BYTES, Shape.SCALAR, false, false, null, true)),
                specs("y"),
                Map.of());
        engine.add(
                new ModelMetadata(
                        new ServableId("two", 123),
                        "fake",
                        plain.inputs(),
                        plain.outputs(),
                        0,
                        Map.of(),
                        Map.of("serving_default", plain, "regress_x_to_y", renamed)),
                r -> List.of());
    }

    private static TensorSpec scalar(String name) {
        return new TensorSpec(name, DataType.INT64, Shape.SCALAR);
    }

    private static List<TensorSpec> specs(String name) {
        return List.of(new TensorSpec(name, DataType.FP32, Shape.of(-1, 2)));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/v1/models/m:predict",
                "/v1/models/m/versions/3:predict",
                "/v1/models/m/labels/stable:predict",
                "/v1/models/m:PREDICT",
                "/v1/models/m/Versions/3:Predict",
                "/V1/models/m:predict",
                "/v1/models/%6D/LABELS/stabl%65:predict"
            })
    void pathsOfRequestsMayNameAVersionOrALabelInAnyCase(String path) {
        // only the beginning that the route table looks at must be in small letters
        if (path.startsWith("/V1")) {
            assertThatThrownBy(() -> client.call("POST", path, "{}")).isInstanceOf(AssertionError.class);
            return;
        }
        FakeExchange x = client.call("POST", path, "{\"instances\":[[1,2]]}");
        assertThat(x.text()).isEqualTo("{\"predictions\":[[1.0,2.0]]}");
        ModelRef asked = engine.requests.get(0).model();
        assertThat(asked.model()).isEqualTo("m");
        assertThat(asked.version()).isEqualTo(path.contains("3") ? 3 : ModelRef.ANY);
        assertThat(asked.label()).isEqualTo(path.contains("stabl") ? "stable" : null);
    }

    @ParameterizedTest
    @CsvSource({
        "GET,/v1/models/m:predict",
        "GET,/v1/models/",
        "GET,/v1/models/m/versions/",
        "GET,/v1/models/m/versions/x",
        "GET,/v1/models/m/versions/1/labels/l",
        "GET,/v1/models/m/foo",
        "POST,/v1/models",
        "POST,/v1/models/m",
        "POST,/v1/models/m/metadata",
        "POST,/v1/models/m:foo",
        "POST,/v1/models/:predict",
        "POST,/v1/models/m/versions/-1:predict",
        "POST,/v1/models/m/versions/1/labels/l:predict",
        "PUT,/v1/models/m:predict",
        "DELETE,/v1/models/m",
        "OPTIONS,/v1/models/m:predict",
        "POST,/v1/models/%zz:Predict"
    })
    void unknownPathsAreMalformedRequests(String method, String path) {
        FakeExchange x = client.call(method, path, "{\"instances\":[[1,2]]}");
        assertThat(x.status()).isEqualTo(400);
        assertThat(x.text()).startsWith("{\"error\":\"Malformed request: " + method + " " + path);
    }

    @Test
    void aVersionBeyondAllNumbersIsNotNumeric() {
        FakeExchange x = client.call("GET", "/v1/models/m/versions/99999999999999999999", "");
        assertThat(x.status()).isEqualTo(400);
        assertThat(x.text()).startsWith("{\"error\":\"Failed to convert version: 99999999999999999999 to numeric.");
    }

    @Test
    void anUnknownModelIsReportedInTheWordingOfBothServers() {
        FakeExchange x = client.call("POST", "/v1/models/none:predict", "{\"instances\":[[1,2]]}");
        assertThat(x.status()).isEqualTo(404);
        assertThat(x.text())
                .contains("Servable not found for request: Latest(none)")
                .contains("Model with name none does not exist.");
        assertThat(client.call("POST", "/v1/models/none/versions/5:predict", "{}")
                        .text())
                .contains("Servable not found for request: Specific(none, 5)");
        FakeExchange version = client.call("POST", "/v1/models/m/versions/5:predict", "{}");
        assertThat(version.status()).isEqualTo(404);
        assertThat(version.text()).contains("Servable not found for request: Specific(m, 5)");
        FakeExchange label = client.call("POST", "/v1/models/m/labels/none:predict", "{}");
        assertThat(label.status()).isEqualTo(400);
        assertThat(label.text()).contains("Unrecognized servable version label: none");
        FakeExchange status = client.call("GET", "/v1/models/none", "");
        assertThat(status.status()).isEqualTo(404);
        assertThat(status.text())
                .contains("Could not find any versions of model none")
                .contains("Model with name none does not exist.");
    }

    @Test
    void theStatusCoversAllVersionsOneVersionOrALabel() {
        String one = "\"model_version_status\":[{\"version\":\"3\",\"state\":\"AVAILABLE\","
                + "\"status\":{\"error_code\":\"OK\",\"error_message\":\"\"}}]}";
        for (String path : List.of("/v1/models/m", "/v1/models/m/versions/3", "/v1/models/m/labels/stable")) {
            FakeExchange x = client.call("GET", path, "");
            assertThat(x.status()).isEqualTo(200);
            assertThat(x.text()).endsWith(one);
        }
        for (String path : List.of("/v1/models/m/versions/3", "/v1/models/m/labels/stable")) {
            assertThat(client.call("GET", path, "").text())
                    .as("only TensorFlow Serving has it")
                    .isEqualTo("{" + one);
        }
        FakeExchange version = client.call("GET", "/v1/models/m/versions/4", "");
        assertThat(version.status()).isEqualTo(404);
        assertThat(version.text()).contains("Could not find version 4 of model m");
        FakeExchange label = client.call("GET", "/v1/models/m/labels/none", "");
        assertThat(label.status()).isEqualTo(400);
        assertThat(label.text()).contains("Unrecognized servable version label: none");
    }

    @Test
    void metadataHasEverySignatureWithAllItsFields() {
        String expected = "{\"model_spec\":{\"name\":\"two\",\"signature_name\":\"\",\"version\":\"123\"},"
                + "\"metadata\":{\"signature_def\":{\"signature_def\":{"
                + "\"regress_x_to_y\":{\"inputs\":{\"inputs\":{\"dtype\":\"DT_FLOAT\",\"tensor_shape\":{\"dim\":["
                + "{\"size\":\"-1\",\"name\":\"\"},{\"size\":\"2\",\"name\":\"\"}],\"unknown_rank\":false},"
                + "\"name\":\"tf_example:0\"}},\"outputs\":{\"outputs\":{\"dtype\":\"DT_INT64\",\"tensor_shape\":{"
                + "\"dim\":[],\"unknown_rank\":false},\"name\":\"outputs\"}},"
                + "\"method_name\":\"tensorflow/serving/regress\",\"defaults\":{}},"
                + "\"serving_default\":{\"inputs\":{\"x\":{\"dtype\":\"DT_STRING\",\"tensor_shape\":{\"dim\":[],"
                + "\"unknown_rank\":true},\"name\":\"x\"}},\"outputs\":{\"y\":{\"dtype\":\"DT_FLOAT\",\"tensor_shape\":{"
                + "\"dim\":[{\"size\":\"-1\",\"name\":\"\"},{\"size\":\"2\",\"name\":\"\"}],\"unknown_rank\":false},"
                + "\"name\":\"y\"}},\"method_name\":\"tensorflow/serving/predict\",\"defaults\":{}}}}}}";
        assertThat(client.call("GET", "/v1/models/two/metadata", "").text()).isEqualTo(expected);
        assertThat(client.call("GET", "/v1/models/two/METADATA", "").text()).isEqualTo(expected);
        assertThat(client.call("GET", "/v1/models/m/versions/3/metadata", "").status())
                .isEqualTo(200);
        assertThat(client.call("GET", "/v1/models/m/labels/stable/metadata", "").status())
                .isEqualTo(200);
        assertThat(client.call("GET", "/v1/models/none/metadata", "").status()).isEqualTo(404);
    }

    @Test
    void crossOriginRequestsAreAllowedOnlyIfConfigured() {
        assertThat(client.call("GET", "/v1/models/m", "").replyHeader("access-control-allow-origin"))
                .isNull();
        FakeClient open = client(V1Options.builder(Clock.system()).cors(true).build());
        for (FakeExchange x : List.of(
                open.call("GET", "/v1/models/m", ""),
                open.call("GET", "/v1/models/none", ""),
                open.call("POST", "/v1/models/m:predict", "{\"instances\":[[1,2]]}"),
                open.call("POST", "/v1/models/m:predict", "nonsense"),
                open.call("OPTIONS", "/v1/models/m:predict", "", "origin", "https://example.org"))) {
            assertThat(x.replyHeader("access-control-allow-origin")).isEqualTo("*");
            assertThat(x.replyHeader("access-control-allow-methods")).isEqualTo("POST, GET");
            assertThat(x.replyHeader("access-control-allow-headers")).isEqualTo("Content-Type");
        }
        assertThat(open.call("OPTIONS", "/v1/models/m:predict", "", "origin", "https://a.b")
                        .status())
                .isEqualTo(200);
        assertThat(open.call("OPTIONS", "/v1/models/m:predict", "", "origin", "ftp://a.b")
                        .status())
                .isEqualTo(400);
        assertThat(open.call("OPTIONS", "/v1/models/m:predict", "").status()).isEqualTo(400);
    }

    @ParameterizedTest
    @EnumSource(value = ErrorCode.class, names = "OK", mode = EnumSource.Mode.EXCLUDE)
    void everyCodeHasTensorFlowServingsStatus(ErrorCode code) {
        Map<ErrorCode, Integer> expected = Map.ofEntries(
                Map.entry(ErrorCode.INVALID_ARGUMENT, 400),
                Map.entry(ErrorCode.FAILED_PRECONDITION, 400),
                Map.entry(ErrorCode.OUT_OF_RANGE, 400),
                Map.entry(ErrorCode.UNAUTHENTICATED, 401),
                Map.entry(ErrorCode.PERMISSION_DENIED, 403),
                Map.entry(ErrorCode.NOT_FOUND, 404),
                Map.entry(ErrorCode.ALREADY_EXISTS, 409),
                Map.entry(ErrorCode.ABORTED, 409),
                Map.entry(ErrorCode.RESOURCE_EXHAUSTED, 429),
                Map.entry(ErrorCode.CANCELLED, 499),
                Map.entry(ErrorCode.UNKNOWN, 500),
                Map.entry(ErrorCode.INTERNAL, 500),
                Map.entry(ErrorCode.DATA_LOSS, 500),
                Map.entry(ErrorCode.UNIMPLEMENTED, 501),
                Map.entry(ErrorCode.UNAVAILABLE, 503),
                Map.entry(ErrorCode.DEADLINE_EXCEEDED, 504));
        engine.add(new ModelMetadata(new ServableId("failing", 1), "fake", specs("x"), specs("y"), 0, Map.of()), r -> {
            throw ServingException.of(code, "it came to nothing");
        });
        FakeExchange x = client.call("POST", "/v1/models/failing:predict", "{\"instances\":[[1,2]]}");
        assertThat(x.status()).isEqualTo(expected.get(code));
        assertThat(x.text()).isEqualTo("{\"error\":\"it came to nothing\"}");
    }

    @Test
    void theTimeLimitIsARequestsDeadline() {
        FakeClient limited = client(V1Options.builder(Clock.system())
                .timeoutNanos(TimeUnit.MILLISECONDS.toNanos(30_000))
                .build());
        FakeExchange x = limited.call("POST", "/v1/models/m:predict", "{\"instances\":[[1,2]]}");
        client.call("POST", "/v1/models/m:predict", "{\"instances\":[[1,2]]}");
        assertThat(engine.requests.get(0).deadlineNanos()).isEqualTo(x.arrivedNanos() + 30_000_000_000L);
        assertThat(engine.requests.get(1).deadlineNanos()).isEqualTo(Long.MAX_VALUE);
    }
}
