// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.caffe2;

import io.nereid.backends.caffe2.OnnxGraph.Value;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What each of Caffe2's operators becomes. Immutable. */
final class Operators {
    /** Puts an operator into the graph and gives the values of its outputs, those that there are in ONNX. */
    interface Conversion {
        List<Value> convert(Call call);
    }

    private final Map<String, Conversion> conversions = new HashMap<>();

    Operators() {
        fills();
        images();
        elements();
        layout();
    }

    /** Null for an operator that is not known. */
    @Nullable Conversion of(String type) {
        return conversions.get(type);
    }

    private void add(Conversion conversion, String... types) {
        for (String type : types) {
            conversions.put(type, conversion);
        }
    }

    private void fills() {
        add(Fills.given(ElementType.FLOAT), "GivenTensorFill");
        add(Fills.given(ElementType.DOUBLE), "GivenTensorDoubleFill");
        add(Fills.given(ElementType.INT32), "GivenTensorIntFill");
        add(Fills.given(ElementType.INT64), "GivenTensorInt64Fill");
        add(Fills.given(ElementType.INT16), "GivenTensorInt16Fill");
        add(Fills.given(ElementType.BOOL), "GivenTensorBoolFill");
        add(Fills.given(ElementType.STRING), "GivenTensorStringFill");
        add(Fills::givenBytes, "GivenTensorByteStringToUInt8Fill");
        add(Fills::raw, Fills.RAW);
        add(Fills::constant, "ConstantFill");
        add(Fills::random, "XavierFill", "MSRAFill", "GaussianFill", "UniformFill", "UniformIntFill");
    }

    private void images() {
        add(Images::conv, "Conv", "Conv1D", "Conv2D", "Conv3D");
        add(Images::convTranspose, "ConvTranspose");
        add(Images::maxPool, "MaxPool", "MaxPool1D", "MaxPool2D", "MaxPool3D");
        add(Images::averagePool, "AveragePool", "AveragePool1D", "AveragePool2D", "AveragePool3D");
        add(Images::spatialBn, "SpatialBN");
        add(Images::instanceNorm, "InstanceNorm");
        add(Images::lrn, "LRN");
        add(Images::resizeNearest, "ResizeNearest");
        add(Images::upsampleBilinear, "UpsampleBilinear");
        add(Images::padImage, "PadImage");
        add(Images::toChannelsLast, "NCHW2NHWC");
        add(Images::toChannelsSecond, "NHWC2NCHW");
    }

    private void elements() {
        for (String type : List.of(
                "Relu",
                "Sigmoid",
                "Tanh",
                "Softplus",
                "Softsign",
                "Abs",
                "Exp",
                "Log",
                "Sqrt",
                "Floor",
                "Ceil",
                "Sin",
                "Cos",
                "Tan",
                "Sign",
                "Reciprocal")) {
            add(Elements.same(type), type);
        }
        add(Elements.same("Neg"), "Negative");
        add(
                Elements.same("Identity"),
                "Copy",
                "Alias",
                "StopGradient",
                "EnsureCPUOutput",
                "CopyFromCPUInput",
                "CopyCPUToGPU",
                "CopyGPUToCPU",
                "CopyOnDeviceLike",
                "EnsureDense");
        add(Elements.same("LeakyRelu", "alpha", 0.01f), "LeakyRelu");
        add(Elements.same("Elu", "alpha", 1), "Elu");
        add(Elements::selu, "Selu");
        add(Elements::hardSigmoid, "HardSigmoid");
        add(Elements::swish, "Swish");
        add(Elements::square, "Sqr");
        add(Elements::inverseRoot, "Rsqrt");
        add(Elements::scale, "Scale");
        add(Elements::pow, "Pow");
        add(Elements::clip, "Clip");
        add(Elements::prelu, "PRelu");
        add(Elements::dropout, "Dropout");
        add(Elements::softmax, "Softmax");
        for (String type : List.of("Sum", "Max", "Min", "Mean")) {
            add(Elements.many(type), type);
        }
        for (String type : List.of("Add", "Sub", "Mul", "Div")) {
            add(Elements.arithmetic(type), type);
        }
        add(Elements.truth("Less"), "LT");
        add(Elements.truth("LessOrEqual"), "LE");
        add(Elements.truth("Greater"), "GT");
        add(Elements.truth("GreaterOrEqual"), "GE");
        add(Elements.truth("Equal"), "EQ");
        add(Elements.truth("And"), "And");
        add(Elements.truth("Or"), "Or");
        add(Elements.truth("Xor"), "Xor");
        add(Elements::not, "Not");
        add(Elements::where, "Where", "Conditional");
        add(Elements::cast, "Cast");
        add(Elements.castTo(ElementType.FLOAT), "HalfToFloat");
        add(Elements.castTo(ElementType.FLOAT16), "FloatToHalf");
        add(Elements.fullyConnected(false), "FC");
        add(Elements.fullyConnected(true), "FCTransposed");
        add(Elements::matMul, "MatMul");
        add(Elements::batchMatMul, "BatchMatMul");
    }

    private void layout() {
        add(Layout::reshape, "Reshape");
        add(Layout::transpose, "Transpose");
        add(Layout::flatten, "Flatten");
        add(Layout::flattenToVector, "FlattenToVec");
        add(Layout::squeeze, "Squeeze");
        add(Layout::expandDims, "ExpandDims");
        add(Layout::concat, "Concat", "DepthConcat");
        add(Layout::split, "Split", "DepthSplit");
        add(Layout::slice, "Slice");
        for (String type : List.of("Sum", "Mean", "Max", "Min", "L1", "L2")) {
            add(Layout.reduce("Reduce" + type), "Reduce" + type);
        }
        for (String type : List.of("Sum", "Mean", "Max")) {
            add(Layout.reduceEnd("Reduce" + type, true), "ReduceFront" + type);
            add(Layout.reduceEnd("Reduce" + type, false), "ReduceBack" + type);
        }
        add(Layout::sumElements, "SumElements");
        add(Layout.argument("ArgMax"), "ArgMax");
        add(Layout.argument("ArgMin"), "ArgMin");
        add(Layout::topK, "TopK");
        add(Layout::gather, "Gather");
        add(Layout::shape, "Shape");
        add(Layout::tile, "Tile");
        add(Layout::normalize, "Normalize");
    }
}
