// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tfdata;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ServableId;
import io.nereid.spi.Signature;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ExampleTensorsTest {
    private static ModelMetadata model(String platform, Map<String, String> properties) {
        return new ModelMetadata(new ServableId("m", 1), platform, List.of(), List.of(), 0, properties);
    }

    @Test
    void theSignaturesOfASavedModelAreDecidedByTheirKeys() {
        TensorSpec text = new TensorSpec("inputs", DataType.BYTES, Shape.of(-1));
        TensorSpec numbers = new TensorSpec("inputs", DataType.FP32, Shape.of(-1, 2));
        TensorSpec scores = new TensorSpec("scores", DataType.FP32, Shape.of(-1, 2));
        TensorSpec outputs = new TensorSpec("outputs", DataType.FP32, Shape.of(-1, 1));
        ModelMetadata saved = model(ExampleSignatures.SAVED_MODEL, Map.of());
        Signature classify = new Signature(Signature.PREDICT, List.of(text), List.of(scores), Map.of());
        Signature regress = new Signature(Signature.PREDICT, List.of(text), List.of(outputs), Map.of());
        ExampleSignatures.check(saved, classify, true);
        ExampleSignatures.check(saved, regress, false);
        ExampleList examples = ExampleList.of(List.of(new Example(Map.of("x", Feature.ofFloats(1)))), null);
        List<Tensor> made = ExampleTensors.of(saved, classify, examples);
        assertThat(made.get(0).dataType()).isEqualTo(DataType.BYTES);
        assertThat(made.get(0).shape()).isEqualTo(Shape.of(1));
        Tensor.closeAll(made);
        refused(saved, regress, true, "Expected classification signature outputs to contain at least one of");
        refused(saved, classify, false, "No regression outputs found in SignatureDef: ");
        Signature other = new Signature(
                Signature.CLASSIFY,
                List.of(new TensorSpec("x", DataType.BYTES, Shape.of(-1))),
                List.of(scores),
                Map.of());
        refused(saved, other, true, "No classification inputs found in SignatureDef: ");
        refused(saved, other, false, "No regression inputs found in SignatureDef: ");
        refused(
                saved,
                new Signature(Signature.CLASSIFY, List.of(text, numbers), List.of(scores), Map.of()),
                true,
                "Expected one input Tensor.");
        Signature three = new Signature(Signature.CLASSIFY, List.of(text), List.of(scores, outputs, scores), Map.of());
        refused(saved, three, true, "Expected one or two output Tensors, found 3");
        refused(saved, three, false, "Expected one output Tensor.");
        refused(
                saved,
                new Signature(Signature.CLASSIFY, List.of(numbers), List.of(scores), Map.of()),
                true,
                "Expects arg[0] to be float but string is provided");
        // Other models are called by the names of their inputs.
        ExampleSignatures.check(model("onnxruntime_onnx", Map.of()), other, true);
    }

    private static void refused(ModelMetadata model, Signature signature, boolean classify, String text) {
        assertThatThrownBy(() -> ExampleSignatures.check(model, signature, classify))
                .hasMessageContaining(text)
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
    }

    private static Example example(Object... pairs) {
        Map<String, Feature> features = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            features.put((String) pairs[i], (Feature) pairs[i + 1]);
        }
        return new Example(features);
    }

    private static Signature predict(TensorSpec... inputs) {
        return new Signature(Signature.PREDICT, List.of(inputs), List.of(), Map.of());
    }

    private static List<Tensor> of(Signature signature, Example... examples) {
        return ExampleTensors.of(model("fake", Map.of()), signature, ExampleList.of(List.of(examples), null));
    }

    private static void rejected(Signature signature, String text, Example... examples) {
        assertThatThrownBy(() -> of(signature, examples))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining(text)
                .satisfies(e -> assertThat(((ServingException) e).code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
    }

    private static TensorSpec spec(String name, DataType type, long... dims) {
        return new TensorSpec(name, type, Shape.of(dims));
    }

    @Test
    void examplesAreReadAndWrittenAsTensorFlowDoes() {
        Example example = Example.parse(Fixtures.of("example"));
        assertThat(example.features())
                .containsEntry("x", Feature.ofFloats(1.5f, -2f))
                .containsEntry("n", Feature.ofLongs(3, -1))
                .containsEntry("s", Feature.ofBytes(List.of(new byte[] {'a'}, new byte[] {-1, 0})));
        assertThat(example.toBytes()).isEqualTo(Fixtures.of("example"));
        Example context = Example.parse(Fixtures.of("context"));
        assertThat(example.withContext(context)).isEqualTo(Example.parse(Fixtures.of("merged")));
        assertThat(ExampleList.of(List.of(example), context).all()).containsExactly(example.withContext(context));
        assertThat(Example.parse(ExampleList.of(List.of(example), context).message(0)))
                .isEqualTo(Example.parse(Fixtures.of("merged")));
    }

    @Test
    void listsThatAreNotPackedReadTheSame() {
        byte[] message = HexFormat.of()
                .parseHex("0a20" + "0a110a0178120c120a0d0000c03f0d00000040" + "0a0b0a016e12061a0408030804");
        assertThat(Example.parse(message).features())
                .containsEntry("x", Feature.ofFloats(1.5f, 2f))
                .containsEntry("n", Feature.ofLongs(3, 4));
    }

    @Test
    void aSignatureToClassifyWithOneStringInputGetsTheMessages() {
        Signature classify =
                new Signature(Signature.CLASSIFY, List.of(spec("inputs", DataType.BYTES, -1)), List.of(), Map.of());
        Example a = example("x", Feature.ofFloats(1));
        Tensor t = of(classify, a, a).get(0);
        assertThat(t.name()).isEqualTo("inputs");
        assertThat(t.shape()).isEqualTo(Shape.of(2));
        byte[] expected = a.toBytes();
        assertThat(t.byteLength()).isEqualTo(2 * (4 + expected.length));
        t.close();
    }

    @Test
    void everyInputGetsTheFeatureOfItsName() {
        Signature signature = predict(
                spec("x", DataType.FP32, -1),
                spec("wide", DataType.FP64, -1, 2),
                spec("count", DataType.INT32, -1, -1),
                spec("flag", DataType.BOOL, -1, 1),
                spec("text", DataType.BYTES, -1, 1));
        Example a = example(
                "x", Feature.ofFloats(1.5f),
                "wide", Feature.ofLongs(1, 2),
                "count", Feature.ofLongs(7, -8, 9),
                "flag", Feature.ofLongs(1),
                "text", Feature.ofTexts("a"));
        List<Tensor> tensors = of(signature, a, a);
        assertThat(tensors)
                .extracting(t -> t.shape().toString())
                .containsExactly("[2]", "[2,2]", "[2,3]", "[2,1]", "[2,1]");
        assertThat(tensors.get(1).buffer().getDouble(8)).isEqualTo(2.0);
        assertThat(tensors.get(2).buffer().getInt(16)).isEqualTo(-8);
        assertThat(Fixtures.bytes(tensors.get(3))).containsExactly(1, 1);
        assertThat(Fixtures.bytes(tensors.get(4))).containsExactly(1, 0, 0, 0, 'a', 1, 0, 0, 0, 'a');
        Tensor.closeAll(tensors);
    }

    @Test
    void whatDoesNotFitIsNamed() {
        Signature one = predict(spec("x", DataType.INT8, -1));
        assertThatThrownBy(() -> of(one)).hasMessage("Input is empty.");
        rejected(
                one,
                "example 1 has no feature 'x'",
                example("x", Feature.ofLongs(1)),
                example("y", Feature.ofLongs(1)));
        rejected(one, "value 128 of feature 'x' of example 0 does not fit", example("x", Feature.ofLongs(128)));
        rejected(one, "is a list of floats, which an input of INT8 does not take", example("x", Feature.ofFloats(1)));
        rejected(one, "has 2 values (expected: as many as shape [] takes)", example("x", Feature.ofLongs(1, 2)));
        Signature rows = predict(spec("x", DataType.FP32, -1, -1));
        rejected(
                rows,
                "feature 'x' of example 1 has 1 values (expected: 2, as in example 0)",
                example("x", Feature.ofLongs(1, 2)),
                example("x", Feature.ofLongs(1)));
        rejected(
                predict(spec("x", DataType.BYTES, -1)),
                "which an input of BYTES does not take",
                example("x", Feature.ofLongs(1)));
        rejected(
                predict(spec("x", DataType.FP32, -1, -1, -1)),
                "more than one dimension",
                example("x", Feature.ofLongs(1)));
    }

    @Test
    void columnsOfAMatrixAreTheFeaturesOfTheirNames() {
        Signature signature = predict(spec("input", DataType.FP32, -1, 2));
        ExampleList examples =
                ExampleList.of(List.of(example("b", Feature.ofFloats(2), "a", Feature.ofLongs(1))), null);
        List<Tensor> tensors = ExampleTensors.of(model("fake", Map.of("feature_names", "a,b")), signature, examples);
        assertThat(tensors.get(0).shape()).isEqualTo(Shape.of(1, 2));
        assertThat(tensors.get(0).buffer().getFloat(0)).isEqualTo(1f);
        assertThat(tensors.get(0).buffer().getFloat(4)).isEqualTo(2f);
        Tensor.closeAll(tensors);
        assertThatThrownBy(() -> ExampleTensors.of(model("fake", Map.of("feature_names", "a,c")), signature, examples))
                .hasMessageContaining("has no feature 'c'");
        assertThatThrownBy(() -> ExampleTensors.of(model("fake", Map.of()), signature, examples))
                .hasMessageContaining("has no feature 'input'");
    }

    @Test
    void halvesAreRoundedToTheNearest() {
        assertThat(FeatureTensorBuilder.half(1f)).isEqualTo((short) 0x3C00);
        assertThat(FeatureTensorBuilder.half(65504f)).isEqualTo((short) 0x7BFF);
        assertThat(FeatureTensorBuilder.half(65520f)).isEqualTo((short) 0x7C00);
        assertThat(FeatureTensorBuilder.half(-2f)).isEqualTo((short) 0xC000);
        assertThat(FeatureTensorBuilder.half(0x1p-24f)).isEqualTo((short) 1);
        assertThat(FeatureTensorBuilder.half(0x1p-14f)).isEqualTo((short) 0x400);
        assertThat(FeatureTensorBuilder.half(1 + 0x1p-11f)).isEqualTo((short) 0x3C00);
        assertThat(FeatureTensorBuilder.half(1 + 3 * 0x1p-11f)).isEqualTo((short) 0x3C02);
    }
}
