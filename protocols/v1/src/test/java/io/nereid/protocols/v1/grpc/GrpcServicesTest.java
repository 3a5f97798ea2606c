// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.protobuf.StringInterner;
import io.nereid.protocols.v1.FakeCall;
import io.nereid.protocols.v1.HalfPlusTwo;
import io.nereid.protocols.v1.V1Codec;
import io.nereid.protocols.v1.common.V1Options;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.ModelRef;
import io.nereid.spi.config.VersionPolicy;
import io.nereid.spi.management.LoggingConfig;
import io.nereid.spi.management.ModelListChange;
import io.nereid.spi.management.ModelListEntry;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tfdata.Example;
import io.nereid.tfdata.ExampleList;
import io.nereid.tfdata.Feature;
import io.nereid.tfdata.ModelSpec;
import io.nereid.tfdata.PredictMessageReader;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class GrpcServicesTest {
    private static final Map<String, byte[]> FIXTURES = fixtures();
    private static final ModelSpec HALF = ModelSpec.of("half");

    private final HalfPlusTwo model = new HalfPlusTwo();
    private final V1Codec codec = new V1Codec(model, model, Runnable::run, V1Options.defaults(Clock.system()));

    private static Map<String, byte[]> fixtures() {
        Map<String, byte[]> all = new HashMap<>();
        try (InputStream in = GrpcServicesTest.class.getResourceAsStream("grpc.txt")) {
            for (String line : new String(in.readAllBytes(), StandardCharsets.UTF_8).split("\n")) {
                String[] parts = line.split(" ", -1);
                all.put(parts[0], HexFormat.of().parseHex(parts[1]));
            }
        } catch (IOException e) {
            throw new AssertionError(e);
        }
        return all;
    }

    private static byte[] fixture(String name) {
        byte[] bytes = FIXTURES.get(name);
        assertThat(bytes).as(name).isNotNull();
        return bytes;
    }

    private void golden(String method, String name) {
        golden(codec, method, name);
    }

    private static void golden(V1Codec codec, String method, String name) {
        FakeCall call = FakeCall.send(codec, method, request(name));
        assertThat(call.text).isEmpty();
        assertThat(call.code).isEqualTo(ErrorCode.OK);
        assertThat(call.answer).isEqualTo(response(name));
    }

    private void refused(String method, byte[] request, ErrorCode code, String text) {
        FakeCall call = FakeCall.send(codec, method, request);
        assertThat(call.text).startsWith(text);
        assertThat(call.code).isEqualTo(code);
    }

    private static Tensor floats(String name, float... values) {
        Tensor t = Tensor.allocate(name, DataType.FP32, Shape.of(values.length));
        t.buffer().asFloatBuffer().put(values);
        return t;
    }

    private static byte[] predict(ModelSpec spec, List<String> filter, String... inputs) {
        List<Tensor> tensors = new ArrayList<>();
        for (String name : inputs) {
            tensors.add(floats(name, 1, 2));
        }
        ProtobufWriter out = new ProtobufWriter();
        PredictMessageReader.writeRequest(out, 1, spec, tensors, filter, false);
        Tensor.closeAll(tensors);
        return inside(out);
    }

    /** The content of the only field of a message. */
    private static byte[] inside(ProtobufWriter out) {
        ProtobufReader wire = new ProtobufReader();
        wire.reset(java.nio.ByteBuffer.wrap(out.toByteArray()).order(java.nio.ByteOrder.LITTLE_ENDIAN));
        wire.readTag();
        wire.readLength();
        return Arrays.copyOfRange(out.array(), wire.position(), out.length());
    }

    private static byte[] examples(ModelSpec spec, float... values) {
        ProtobufWriter out = new ProtobufWriter();
        spec.write(out, 1);
        List<Example> all = new ArrayList<>();
        for (float value : values) {
            all.add(new Example(Map.of("x", Feature.ofFloats(value))));
        }
        ExampleList.of(all, null).write(out, 2);
        return out.toByteArray();
    }

    private static byte[] tasks(String... namesAndSignaturesAndMethods) {
        String[] a = namesAndSignaturesAndMethods;
        ProtobufWriter out = new ProtobufWriter();
        for (int i = 0; i < a.length; i += 3) {
            int task = out.begin(1);
            new ModelSpec(a[i], ModelRef.ANY, null, a[i + 1]).write(out, 1);
            out.textField(2, "tensorflow/serving/" + a[i + 2]);
            out.end(task);
        }
        ExampleList.of(List.of(new Example(Map.of("x", Feature.ofFloats(1)))), null)
                .write(out, 2);
        return out.toByteArray();
    }

    // Predict

    @Test
    void predictionSuccess() {
        golden("Predict", "predict/typed");
    }

    @Test
    void numbersTravelAsContentWhenAskedSo() {
        V1Codec asContent = new V1Codec(
                model,
                model,
                Runnable::run,
                V1Options.builder(Clock.system()).tensorContent(true).build());
        golden(asContent, "Predict", "predict/content");
    }

    @Test
    void missingAndEmptyModelSpec() {
        refused("Predict", new byte[0], ErrorCode.INVALID_ARGUMENT, "Missing ModelSpec");
        refused(
                "Predict",
                predict(ModelSpec.of(""), List.of(), "x"),
                ErrorCode.INVALID_ARGUMENT,
                "ModelSpec has no name");
        refused("Classify", new byte[0], ErrorCode.INVALID_ARGUMENT, "Missing ModelSpec");
        refused("Regress", new byte[0], ErrorCode.INVALID_ARGUMENT, "Missing ModelSpec");
        refused("GetModelMetadata", new byte[0], ErrorCode.INVALID_ARGUMENT, "Missing ModelSpec");
        refused("GetModelStatus", new byte[0], ErrorCode.INVALID_ARGUMENT, "Missing ModelSpec");
    }

    @Test
    void unknownModelsVersionsAndLabels() {
        refused(
                "Predict",
                predict(ModelSpec.of("no"), List.of(), "x"),
                ErrorCode.NOT_FOUND,
                "Servable not found for request: Latest(no)");
        refused(
                "Predict",
                predict(ModelSpec.of("half", 9, ""), List.of(), "x"),
                ErrorCode.NOT_FOUND,
                "Servable not found for request: Specific(half, 9)");
        refused(
                "Predict",
                predict(new ModelSpec("half", ModelRef.ANY, "beta", ""), List.of(), "x"),
                ErrorCode.INVALID_ARGUMENT,
                "Unrecognized servable version label: beta");
        refused(
                "Regress",
                examples(ModelSpec.of("no"), 1),
                ErrorCode.NOT_FOUND,
                "Servable not found for request: Latest(no)");
        FakeCall call = FakeCall.send(
                codec, "Predict", predict(new ModelSpec("half", ModelRef.ANY, "stable", ""), List.of(), "x"));
        assertThat(call.code).isEqualTo(ErrorCode.OK);
        assertThat(model.requests.get(0).model()).isEqualTo(new ModelRef("half", ModelRef.ANY, "stable"));
    }

    @Test
    void unknownSignature() {
        refused(
                "Predict",
                predict(ModelSpec.of("half", ModelRef.ANY, "nope"), List.of(), "x"),
                ErrorCode.FAILED_PRECONDITION,
                "Serving signature key \"nope\" not found.");
        refused(
                "Classify",
                examples(ModelSpec.of("half", ModelRef.ANY, "nope"), 1),
                ErrorCode.INVALID_ARGUMENT,
                "No signature was found with the name: nope");
    }

    @Test
    void inputNamesThatDifferAreReported() {
        refused(
                "Predict",
                predict(HALF, List.of()),
                ErrorCode.INVALID_ARGUMENT,
                "input size does not match signature: 0!=1 len({}) != len({x}). Sent extra: {}. Missing but required:"
                        + " {x}.");
        refused(
                "Predict",
                predict(HALF, List.of(), "b", "a"),
                ErrorCode.INVALID_ARGUMENT,
                "input size does not match signature: 2!=1 len({a,b}) != len({x}). Sent extra: {a,b}. Missing but"
                        + " required: {x}.");
        refused(
                "Predict",
                predict(HALF, List.of(), "x", "a"),
                ErrorCode.INVALID_ARGUMENT,
                "input size does not match signature: 2!=1 len({a,x}) != len({x}). Sent extra: {a}.");
    }

    @Test
    void outputFilters() {
        refused(
                "Predict",
                predict(HALF, List.of("z"), "x"),
                ErrorCode.INVALID_ARGUMENT,
                "output tensor alias not found in signature: z Outputs expected to be in the set {y}.");
        refused(
                "Predict",
                predict(HALF, List.of("y", "y"), "x"),
                ErrorCode.INVALID_ARGUMENT,
                "duplicate output tensor alias: y");
        FakeCall call = FakeCall.send(codec, "Predict", predict(HALF, List.of("y"), "x"));
        assertThat(call.code).isEqualTo(ErrorCode.OK);
        assertThat(model.requests.get(0).outputs()).containsExactly(new RequestedOutput("y", 0));
    }

    @Test
    void signatureVersionAndDeadlineReachTheEngineAndResponsesNameTheVersion() {
        FakeCall call = new FakeCall("Predict");
        call.deadline = 77;
        call.start(codec, predict(ModelSpec.of("half", 3, "regress_x_to_y"), List.of(), "x"));
        assertThat(call.code).isEqualTo(ErrorCode.OK);
        assertThat(model.requests.get(0).deadlineNanos()).isEqualTo(77);
        assertThat(model.requests.get(0).options().signature()).isEqualTo("regress_x_to_y");
        assertThat(model.requests.get(0).model()).isEqualTo(ModelRef.exact("half", 3));
        PredictMessageReader message = new PredictMessageReader(new ProtobufReader(), new StringInterner());
        MemoryRegion answer = MemoryRegion.copyOf(call.answer, 0, call.answer.length);
        message.scanResponse(answer);
        assertThat(message.spec()).isEqualTo(ModelSpec.of("half", 3, "regress_x_to_y"));
        answer.release();
    }

    @Test
    void largeOutputsAreSplicedInAndStringsConverted() {
        Random random = new Random(3);
        for (int size : new int[] {0, 1, 127, 128, 255, 256, 5000, 100_000}) {
            float[] values = new float[size];
            for (int i = 0; i < size; i++) {
                values[i] = random.nextFloat();
            }
            try (Tensor expected = floats("y", values)) {
                model.answer = y -> {
                    y.close();
                    return expected.retain();
                };
                FakeCall call = FakeCall.send(codec, "Predict", predict(HALF, List.of(), "x"));
                ProtobufWriter out = new ProtobufWriter();
                PredictMessageReader.writeResponse(
                        out, 1, ModelSpec.of("half", 3, "serving_default"), List.of(expected), false);
                assertThat(call.answer).as("%s values", size).isEqualTo(inside(out));
            }
        }
    }

    @Test
    void failuresOfTheModelKeepTheirCode() {
        model.answer = y -> {
            throw ServingException.invalidArgument("shape mismatch");
        };
        refused("Predict", predict(HALF, List.of(), "x"), ErrorCode.INVALID_ARGUMENT, "shape mismatch");
        refused("Classify", examples(HALF, 1), ErrorCode.INVALID_ARGUMENT, "shape mismatch");
    }

    @Test
    void aClientThatDisconnectsCancelsTheInference() {
        model.holding = true;
        FakeCall call = FakeCall.send(codec, "Predict", predict(HALF, List.of(), "x"));
        assertThat(call.code).isNull();
        call.cancel();
        assertThat(model.cancelled).isEqualTo(1);
        model.held.forEach(Runnable::run);
        assertThat(call.answer).isEmpty();
    }

    // Classify, Regress, MultiInference

    @Test
    void classificationAndRegressionGiveTheGoldenAnswers() {
        golden("Classify", "classify");
        golden("Regress", "regress");
    }

    @Test
    void noExamples() {
        refused("Classify", examples(HALF), ErrorCode.INVALID_ARGUMENT, "Input is empty.");
        refused("Regress", examples(HALF), ErrorCode.INVALID_ARGUMENT, "Input is empty.");
    }

    @Test
    void outputsOfUnexpectedShape() {
        model.answer = y -> {
            y.close();
            return floats("y", 1, 2, 3);
        };
        refused(
                "Classify",
                examples(HALF, 1, 2),
                ErrorCode.INVALID_ARGUMENT,
                "Expected scores output batch size of 2. Got: 3");
        refused(
                "Regress",
                examples(HALF, 1, 2),
                ErrorCode.INVALID_ARGUMENT,
                "Input batch size did not match output batch size: 2 vs. 3");
        model.answer = y -> {
            y.close();
            return Tensor.allocate("y", DataType.FP32, Shape.of(1, 2, 2));
        };
        refused(
                "Classify",
                examples(HALF, 1),
                ErrorCode.INVALID_ARGUMENT,
                "Expected Tensor shape: [batch_size num_classes]");
        refused(
                "Regress",
                examples(HALF, 1),
                ErrorCode.INVALID_ARGUMENT,
                "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got [1,2,2]");
    }

    @Test
    void tasksAreRunTogetherAndAnsweredInTheirOrder() {
        golden("MultiInference", "multi");
        model.holding = true;
        FakeCall call = FakeCall.send(codec, "MultiInference", fixture("multi/request"));
        assertThat(model.held).hasSize(2);
        model.held.get(1).run();
        assertThat(call.code).isNull();
        model.held.get(0).run();
        assertThat(call.answer).isEqualTo(fixture("multi/response"));
    }

    @Test
    void oneFailingTaskFailsAllAndStopsTheOthers() {
        model.holding = true;
        FakeCall call = FakeCall.send(codec, "MultiInference", fixture("multi/request"));
        model.answer = y -> {
            throw ServingException.invalidArgument("no");
        };
        model.held.get(0).run();
        assertThat(call.code).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(model.cancelled).isEqualTo(2);
        model.held.get(1).run();
        assertThat(call.text).isEqualTo("no");
    }

    @Test
    void rulesOfMultiInference() {
        String regress = "regress_x_to_y";
        refused(
                "MultiInference",
                tasks("", regress, "regress"),
                ErrorCode.INVALID_ARGUMENT,
                "Found ModelSpec with an empty model name.");
        refused(
                "MultiInference",
                tasks("half", regress, "regress", "other", "classify_x_to_y", "classify"),
                ErrorCode.INVALID_ARGUMENT,
                "All ModelSpecs in a MultiInferenceRequest must access the same model name.");
        refused(
                "MultiInference",
                tasks("half", regress, "regress", "half", regress, "regress"),
                ErrorCode.INVALID_ARGUMENT,
                "Duplicate evaluation of signature: regress_x_to_y");
        refused(
                "MultiInference",
                tasks("half", "nope", "regress"),
                ErrorCode.INVALID_ARGUMENT,
                "Requested signature not found in model graph: nope");
        refused(
                "MultiInference",
                tasks("half", regress, "predict"),
                ErrorCode.UNIMPLEMENTED,
                "Unsupported signature method_name: tensorflow/serving/predict");
    }

    // Metadata and status

    @Test
    void metadataHoldsAllSignatures() {
        golden("GetModelMetadata", "metadata");
        ProtobufWriter none = new ProtobufWriter();
        HALF.write(none, 1);
        refused(
                "GetModelMetadata",
                none.toByteArray(),
                ErrorCode.INVALID_ARGUMENT,
                "GetModelMetadataRequest must specify at least one metadata_field");
        none.textField(2, "weights");
        refused(
                "GetModelMetadata",
                none.toByteArray(),
                ErrorCode.INVALID_ARGUMENT,
                "Metadata field weights is not supported");
    }

    private static byte[] status(ModelSpec spec) {
        ProtobufWriter out = new ProtobufWriter();
        spec.write(out, 1);
        return out.toByteArray();
    }

    @Test
    void allVersionsAreReportedHighestFirst() {
        golden("GetModelStatus", "status");
    }

    @Test
    void oneVersionByNumberOrLabel() {
        byte[] byNumber = FakeCall.send(codec, "GetModelStatus", status(ModelSpec.of("half", 3, ""))).answer;
        byte[] byLabel = FakeCall.send(
                        codec, "GetModelStatus", status(new ModelSpec("half", ModelRef.ANY, "stable", "")))
                .answer;
        assertThat(byNumber)
                .isEqualTo(HexFormat.of().parseHex("0a060803101e1a00"))
                .isEqualTo(byLabel);
    }

    @Test
    void unknownModelsVersionsAndLabelsHaveNoStatus() {
        refused(
                "GetModelStatus",
                status(ModelSpec.of("no")),
                ErrorCode.NOT_FOUND,
                "Could not find any versions of model no");
        refused(
                "GetModelStatus",
                status(ModelSpec.of("never")),
                ErrorCode.NOT_FOUND,
                "Could not find any versions of model never");
        refused(
                "GetModelStatus",
                status(ModelSpec.of("half", 8, "")),
                ErrorCode.NOT_FOUND,
                "Could not find version 8 of model half");
        refused(
                "GetModelStatus",
                status(new ModelSpec("half", ModelRef.ANY, "beta", "")),
                ErrorCode.INVALID_ARGUMENT,
                "Unrecognized servable version label: beta");
        refused(
                "GetModelStatus",
                status(new ModelSpec("half", ModelRef.ANY, "gone", "")),
                ErrorCode.NOT_FOUND,
                "Could not find version 9 of model half");
    }

    // Reload

    @Test
    void aNewListReachesTheServerCompletely() {
        golden("HandleReloadConfigRequest", "reload");
        assertThat(model.configured).extracting(ModelListEntry::name).containsExactly("a", "b", "c");
        ModelListEntry a = model.configured.get(0);
        assertThat(a.basePath()).isEqualTo("/models/a");
        assertThat(a.platform()).isEqualTo("tensorflow");
        assertThat(a.versionPolicy()).isEqualTo(new VersionPolicy(VersionPolicy.Kind.SPECIFIC, 0, List.of(1L, 300L)));
        assertThat(a.labels().get("canary").targets().get(0).version()).isEqualTo(300);
        assertThat(a.logging()).isEqualTo(new LoggingConfig("tfrecord", "/logs/a", 0.5));
        ModelListEntry b = model.configured.get(1);
        assertThat(b.platform()).isEqualTo("tensorflow");
        assertThat(b.versionPolicy()).isEqualTo(new VersionPolicy(VersionPolicy.Kind.LATEST, 2, List.of()));
        assertThat(b.logging()).isNull();
        assertThat(model.configured.get(2).versionPolicy().kind()).isEqualTo(VersionPolicy.Kind.ALL);
    }

    @Test
    void modelsThatDoNotServeFailTheReloadTogether() {
        model.changes = List.of(
                new ModelListChange(
                        "a",
                        ModelListChange.Action.ADDED,
                        List.of(),
                        List.of(),
                        ServingException.of(ErrorCode.UNAVAILABLE, "no file")),
                new ModelListChange("b", ModelListChange.Action.KEPT, List.of(), List.of(), null),
                new ModelListChange(
                        "c",
                        ModelListChange.Action.ADDED,
                        List.of(),
                        List.of(),
                        ServingException.of(ErrorCode.UNKNOWN, "bad")));
        refused(
                "HandleReloadConfigRequest",
                fixture("reload/request"),
                ErrorCode.UNAVAILABLE,
                "2 of 3 model(s) did not become available: {{a due to error: no file}{c due to error: bad}}");
    }

    @Test
    void otherConfigurationsAndUnknownMetricsAreRejected() {
        String text = "ServerModelConfig type not supported by HandleReloadConfigRequest. Only ModelConfigList is"
                + " currently supported";
        refused("HandleReloadConfigRequest", fixture("reload/custom"), ErrorCode.INVALID_ARGUMENT, text);
        refused("HandleReloadConfigRequest", new byte[0], ErrorCode.INVALID_ARGUMENT, text);
        refused(
                "HandleReloadConfigRequest",
                fixture("reload/metric"),
                ErrorCode.INVALID_ARGUMENT,
                "the increase of metric ':m'");
        assertThat(model.configured).isEmpty();
    }

    @Test
    void brokenMessagesAreTheClientsFaultAndLeakNothing() {
        Random random = new Random(5);
        Map<String, String> methods = Map.of(
                "predict/typed", "Predict",
                "classify", "Classify",
                "regress", "Regress",
                "multi", "MultiInference",
                "metadata", "GetModelMetadata",
                "status", "GetModelStatus",
                "reload", "HandleReloadConfigRequest");
        List<String> names = methods.keySet().stream().sorted().toList();
        int refusals = 0;
        for (int round = 0; round < 20_000; round++) {
            String name = names.get(random.nextInt(names.size()));
            byte[] message = request(name).clone();
            for (int i = random.nextInt(3); i >= 0; i--) {
                message[random.nextInt(message.length)] = (byte) random.nextInt();
            }
            if (random.nextInt(4) == 0) {
                message = Arrays.copyOf(message, random.nextInt(message.length));
            }
            FakeCall call = FakeCall.send(codec, methods.get(name), message);
            assertThat(call.code)
                    .as("%s %s: %s", name, HexFormat.of().formatHex(message), call.text)
                    .isIn(
                            ErrorCode.OK,
                            ErrorCode.INVALID_ARGUMENT,
                            ErrorCode.NOT_FOUND,
                            ErrorCode.FAILED_PRECONDITION,
                            ErrorCode.UNIMPLEMENTED);
            assertThat(call.freed).as(HexFormat.of().formatHex(message)).isTrue();
            refusals += call.code == ErrorCode.OK ? 0 : 1;
            model.requests.clear();
        }
        assertThat(refusals).isGreaterThan(5000);
    }

    private static byte[] request(String name) {
        byte[] bytes = FIXTURES.get(name + "/request");
        return bytes != null ? bytes : fixture(name.replace("/", "/request/"));
    }

    private static byte[] response(String name) {
        byte[] bytes = FIXTURES.get(name + "/response");
        return bytes != null ? bytes : fixture(name.replace("/", "/response/"));
    }

    @Test
    void tensorsOfOtherTypesAreNamed() {
        ProtobufWriter out = new ProtobufWriter();
        HALF.write(out, 1);
        int entry = out.begin(2);
        out.textField(1, "x");
        int tensor = out.begin(2);
        out.varintField(1, 8);
        out.end(tensor);
        out.end(entry);
        refused("Predict", out.toByteArray(), ErrorCode.INVALID_ARGUMENT, "tensor 'x' has dtype DT_COMPLEX64");
    }
}
