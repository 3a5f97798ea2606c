// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.rest;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.observe.Observability;
import io.nereid.protocols.v2.FakeEngine;
import io.nereid.protocols.v2.FakeExchange;
import io.nereid.protocols.v2.V2Codec;
import io.nereid.protocols.v2.Wire;
import io.nereid.protocols.v2.grpc.DocumentProtoBuilder;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.management.LoadOptions;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class RestManagementTest {
    private final FakeEngine engine = new FakeEngine();
    private final V2Codec codec = new V2Codec(
            engine, engine, Observability.NONE, Clock.system(), Runnable::run, V2Options.defaults("1.2.3", 1 << 20));

    private FakeExchange get(String path) {
        return Wire.send(codec, new FakeExchange("GET", path, new byte[0]));
    }

    private FakeExchange post(String path, String body) {
        return Wire.send(codec, new FakeExchange("POST", path, Wire.utf8(body)));
    }

    @Test
    void serverMetadataHasNameAndExtensions() {
        assertThat(get("/v2").text())
                .isEqualTo("{\"name\":\"nereid\",\"version\":\"1.2.3\",\"extensions\":[\"classification\","
                        + "\"sequence\",\"model_repository\",\"model_repository(unload_dependents)\","
                        + "\"schedule_policy\",\"model_configuration\",\"binary_tensor_data\",\"parameters\","
                        + "\"statistics\",\"trace\",\"logging\"]}");
    }

    @Test
    void healthIsAStatusAndABody() {
        assertThat(get("/v2/health/live").text()).isEqualTo("{\"live\":true}");
        assertThat(get("/v2/health/ready").text()).isEqualTo("{\"ready\":true}");
        assertThat(get("/v2/models/identity/ready").text()).isEqualTo("{\"name\":\"identity\",\"ready\":true}");
        engine.ready = false;
        assertThat(get("/v2/health/ready").status).isEqualTo(503);
        assertThat(get("/v2/health/ready").text()).isEqualTo("{\"ready\":false}");
        FakeExchange model = get("/v2/models/identity/versions/1/ready");
        assertThat(model.status).isEqualTo(503);
        assertThat(model.text())
                .isEqualTo("{\"name\":\"identity\",\"ready\":false,"
                        + "\"error\":\"Model with name identity is not ready.\"}");
        assertThat(get("/v2/models/nobody/ready").status).isEqualTo(404);
    }

    @Test
    void modelsAreListedAndDescribed() {
        assertThat(get("/v2/models").text()).isEqualTo("{\"models\":[\"identity\",\"broken\",\"never\"]}");
        assertThat(get("/v2/models/identity").text())
                .isEqualTo("{\"name\":\"identity\",\"versions\":[\"1\"],\"platform\":\"java_builtin\","
                        + "\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[-1,4]}],"
                        + "\"outputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[-1,4]}]}");
        assertThat(get("/v2/models/identity/versions/9").status).isEqualTo(404);
        assertThat(get("/v2/models/identity/versions/1x").status).isEqualTo(400);
    }

    @Test
    void theIndexListsVersionsStatesAndReasons() {
        String all = "[{\"name\":\"identity\",\"version\":\"1\",\"state\":\"READY\"},"
                + "{\"name\":\"broken\",\"version\":\"3\",\"state\":\"UNAVAILABLE\",\"reason\":\"no such file\"},"
                + "{\"name\":\"never\"}]";
        assertThat(post("/v2/repository/index", "").text()).isEqualTo(all);
        assertThat(post("/v2/repository/some/index", "{\"ready\":false}").text())
                .isEqualTo(all);
        assertThat(post("/v2/repository/index", "{\"ready\":true}").text())
                .isEqualTo("[{\"name\":\"identity\",\"version\":\"1\",\"state\":\"READY\"}]");
        FakeExchange bad = post("/v2/repository/index", "{\"ready\":1}");
        assertThat(bad.status).isEqualTo(400);
        assertThat(bad.text()).contains("Invalid value for 'ready': expected a boolean");
    }

    @Test
    void modelsAreLoadedAndUnloaded() {
        FakeExchange load = post("/v2/repository/models/identity/load", "");
        assertThat(load.status).isEqualTo(200);
        assertThat(load.text()).isEqualTo("{\"name\":\"identity\",\"load\":true}");
        FakeExchange unload =
                post("/v2/repository/models/identity/unload", "{\"parameters\":{\"unload_dependents\":false}}");
        assertThat(unload.text()).isEqualTo("{\"name\":\"identity\",\"unload\":true}");
        assertThat(engine.loads).containsExactly("load identity", "unload identity");
        engine.loadFailure = ServingException.of(ErrorCode.FAILED_PRECONDITION, "no version is available");
        assertThat(post("/v2/repository/models/identity/load", "").status).isEqualTo(400);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "/v2/repository/models/..%2Fetc/load | '' | 400 | invalid model name '../etc', model name must not"
                        + " contain path traversal characters",
                "/v2/repository/models/..%5Cetc/unload | '' | 400 | path traversal",
                "/v2/repository/r/models/m/load | '' | 501 | 'repository_name' specification is not supported",
                "/v2/repository/models/m/load | {\"parameters\":{\"config\":{}}} | 400 | load parameter 'config' has"
                        + " invalid type",
                "/v2/repository/models/m/load | {\"parameters\":{\"config\":1}} | 400 | Config parameter 'config' must"
                        + " have string type for its value",
                "/v2/repository/models/m/load | {\"parameters\":{\"x\":1}} | 400 | Unrecognized load parameter 'x' with"
                        + " type 'INT'",
                "/v2/repository/models/m/load | {\"parameters\":{\"file:1/m\":\"AA==\"}} | 400 | Load parameter"
                        + " 'config' must be specified for model file override",
                "/v2/repository/models/m/load | {\"parameters\":{\"config\":\"{}\",\"file:1/m\":1}} | 400 | File"
                        + " parameter 'file:1/m' must have bytes type for its value",
                "/v2/repository/models/m/load | {\"parameters\":{\"config\":\"{}\",\"file:1/m\":\"!\"}} | 400 | invalid"
                        + " base64",
                "/v2/repository/models/m/load | [] | 400 | unexpected array",
            })
    void badRepositoryCallsAreRejected(String path, String body, int status, String reason) {
        FakeExchange x = post(path, body);
        assertThat(x.text()).contains(reason);
        assertThat(x.status).isEqualTo(status);
        assertThat(engine.loads).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{\"parameters\":{\"config\":\"{}\",\"file:1/model.onnx\":\"AQID\"}}",
                "{\"parameters\":{\"config\":\"{\\\"backend\\\":\\\"python\\\"}\"}}",
                "{\"parameters\":{\"config\":\"{\\\"backend\\\":\\\"mine\\\"}\"}}",
                "{\"parameters\":{\"config\":\"{\\\"platform\\\":\\\"mine\\\"}\"}}",
                "{\"parameters\":{\"config\":\"{\\\"modelOperations\\\":{}}\"}}",
                "{\"parameters\":{\"config\":\"{\\\"parameters\\\":{\\\"EXECUTION_ENV_PATH\\\":{}}}\"}}",
                "{\"parameters\":{\"config\":\"{\\\"parameters\\\":{\\\"TRITON_BATCH_STRATEGY_PATH\\\":{}}}\"}}",
                "{\"parameters\":{\"config\":\"{\\\"parameters\\\":{\\\"flavor\\\":{}}}\"}}",
            })
    void filesAndCodeOfClientsAreNotAccepted(String body) {
        FakeExchange x = post("/v2/repository/models/m/load", body);
        assertThat(x.status).isEqualTo(403);
        assertThat(x.text()).contains("--allow-model-upload");
        assertThat(engine.loads).isEmpty();
    }

    @Test
    void aConfigurationOfAModelThatIsDataIsAccepted() {
        String body =
                "{\"parameters\":{\"config\":\"{\\\"backend\\\":\\\"onnxruntime\\\",\\\"max_batch_size\\\":8}\"}}";
        assertThat(post("/v2/repository/models/m/load", body).status).isEqualTo(200);
    }

    @Test
    void aLoadMayBringItsConfigurationAndFilesWhereThatIsAllowed() {
        V2Codec open = new V2Codec(
                engine,
                engine,
                Observability.NONE,
                Clock.system(),
                Runnable::run,
                V2Options.builder("1", 1 << 20).modelUpload(true).build());
        FakeExchange x = Wire.send(
                open,
                new FakeExchange(
                        "POST",
                        "/v2/repository/models/m/load",
                        Wire.utf8(
                                "{\"parameters\":{\"config\":\"{\\\"backend\\\":\\\"b\\\"}\",\"file:1/model.onnx\":\"AQID\"}}")));
        assertThat(x.status).isEqualTo(200);
        assertThat(engine.lastLoad.config()).isEqualTo("{\"backend\":\"b\"}");
        assertThat(engine.lastLoad.files().get("1/model.onnx")).containsExactly(1, 2, 3);
        post("/v2/repository/models/m/load", "{\"parameters\":null}");
        assertThat(engine.lastLoad).isSameAs(LoadOptions.NONE);
    }

    @Test
    void anUnloadMayTakeDependentsAlong() {
        post("/v2/repository/models/m/unload", "{\"parameters\":{\"unload_dependents\":true}}");
        assertThat(engine.loads).containsExactly("unload m and dependents");
        assertThat(post("/v2/repository/models/m/unload", "{\"parameters\":{\"unload_dependents\":1}}").status)
                .isEqualTo(400);
    }

    @Test
    void aCompletedConfigurationIsPrintedAsItIs() throws Exception {
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("name", "identity");
        document.put("max_batch_size", 4L);
        document.put("input", List.of(Map.of("name", "x"), Map.of("dims", List.of(-1L, 2L)), Map.of("optional", true)));
        document.put("dynamic_batching", Map.of("preferred_batch_size", List.of(2L)));
        document.put("instance_group", List.of(Map.of("kind", "KIND_CPU")));
        document.put("parameters", Map.of("p", Map.of("string_value", "v")));
        document.put("version_policy", Map.of("specific", Map.of("versions", List.of(3L))));
        engine.config = ModelConfig.builder("identity").document(document).build();
        assertThat(get("/v2/models/identity/config").text())
                .isEqualTo("{\"name\":\"identity\",\"max_batch_size\":4,\"input\":[{\"name\":\"x\"},{\"dims\":[-1,2]},"
                        + "{\"optional\":true}],\"dynamic_batching\":{\"preferred_batch_size\":[2]},"
                        + "\"instance_group\":[{\"kind\":\"KIND_CPU\"}],\"parameters\":{\"p\":{\"string_value\":\"v\"}},"
                        + "\"version_policy\":{\"specific\":{\"versions\":[3]}}}");
        var message = DocumentProtoBuilder.of(engine.config);
        assertThat(message.getMaxBatchSize()).isEqualTo(4);
        assertThat(message.getInput(1).getDimsList()).containsExactly(-1L, 2L);
        assertThat(message.getInput(2).getOptional()).isTrue();
        assertThat(message.getDynamicBatching().getPreferredBatchSizeList()).containsExactly(2);
        assertThat(message.getInstanceGroup(0).getKind().name()).isEqualTo("KIND_CPU");
        assertThat(message.getParametersOrThrow("p").getStringValue()).isEqualTo("v");
        assertThat(message.getVersionPolicy().getSpecific().getVersions(0)).isEqualTo(3);
    }
}
