// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.caffe2;

import io.nereid.backends.onnximport.onnx.ElementType;
import io.nereid.backends.onnximport.onnx.OnnxGraph.Value;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The conversions of Caffe2's operators to ONNX, by operator type. Immutable. */
final class Caffe2Operators {
    /**
     * Converts an operator: adds nodes to the graph and returns the values of its outputs. The list is shorter than the
     * operator's outputs when ONNX does not have the last ones.
     */
    interface Conversion {
        List<Value> convert(OperatorContext call);
    }

    private final Map<String, Conversion> conversions = new HashMap<>();

    Caffe2Operators() {
        fills();
        images();
        elements();
        layout();
    }

    /** The conversion of an operator type, or null when there is none. */
    @Nullable Conversion of(String type) {
        return conversions.get(type);
    }

    private void add(Conversion conversion, String... types) {
        for (String type : types) {
            conversions.put(type, conversion);
        }
    }

    private void fills() {
        add(ConstantOperators.given(ElementType.FLOAT), "GivenTensorFill");
        add(ConstantOperators.given(ElementType.DOUBLE), "GivenTensorDoubleFill");
        add(ConstantOperators.given(ElementType.INT32), "GivenTensorIntFill");
        add(ConstantOperators.given(ElementType.INT64), "GivenTensorInt64Fill");
        add(ConstantOperators.given(ElementType.INT16), "GivenTensorInt16Fill");
        add(ConstantOperators.given(ElementType.BOOL), "GivenTensorBoolFill");
        add(ConstantOperators.given(ElementType.STRING), "GivenTensorStringFill");
        add(ConstantOperators::givenBytes, "GivenTensorByteStringToUInt8Fill");
        add(ConstantOperators::raw, ConstantOperators.RAW);
        add(ConstantOperators::constant, "ConstantFill");
        add(ConstantOperators::random, "XavierFill", "MSRAFill", "GaussianFill", "UniformFill", "UniformIntFill");
    }

    private void images() {
        add(ImageOperators::conv, "Conv", "Conv1D", "Conv2D", "Conv3D");
        add(ImageOperators::convTranspose, "ConvTranspose");
        add(ImageOperators::maxPool, "MaxPool", "MaxPool1D", "MaxPool2D", "MaxPool3D");
        add(ImageOperators::averagePool, "AveragePool", "AveragePool1D", "AveragePool2D", "AveragePool3D");
        add(ImageOperators::spatialBn, "SpatialBN");
        add(ImageOperators::instanceNorm, "InstanceNorm");
        add(ImageOperators::lrn, "LRN");
        add(ImageOperators::resizeNearest, "ResizeNearest");
        add(ImageOperators::upsampleBilinear, "UpsampleBilinear");
        add(ImageOperators::padImage, "PadImage");
        add(ImageOperators::toChannelsLast, "NCHW2NHWC");
        add(ImageOperators::toChannelsSecond, "NHWC2NCHW");
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
            add(ElementwiseOperators.same(type), type);
        }
        add(ElementwiseOperators.same("Neg"), "Negative");
        add(
                ElementwiseOperators.same("Identity"),
                "Copy",
                "Alias",
                "StopGradient",
                "EnsureCPUOutput",
                "CopyFromCPUInput",
                "CopyCPUToGPU",
                "CopyGPUToCPU",
                "CopyOnDeviceLike",
                "EnsureDense");
        add(ElementwiseOperators.same("LeakyRelu", "alpha", 0.01f), "LeakyRelu");
        add(ElementwiseOperators.same("Elu", "alpha", 1), "Elu");
        add(ElementwiseOperators::selu, "Selu");
        add(ElementwiseOperators::hardSigmoid, "HardSigmoid");
        add(ElementwiseOperators::swish, "Swish");
        add(ElementwiseOperators::square, "Sqr");
        add(ElementwiseOperators::inverseRoot, "Rsqrt");
        add(ElementwiseOperators::scale, "Scale");
        add(ElementwiseOperators::pow, "Pow");
        add(ElementwiseOperators::clip, "Clip");
        add(ElementwiseOperators::prelu, "PRelu");
        add(ElementwiseOperators::dropout, "Dropout");
        add(ElementwiseOperators::softmax, "Softmax");
        for (String type : List.of("Sum", "Max", "Min", "Mean")) {
            add(ElementwiseOperators.many(type), type);
        }
        for (String type : List.of("Add", "Sub", "Mul", "Div")) {
            add(ElementwiseOperators.arithmetic(type), type);
        }
        add(ElementwiseOperators.truth("Less"), "LT");
        add(ElementwiseOperators.truth("LessOrEqual"), "LE");
        add(ElementwiseOperators.truth("Greater"), "GT");
        add(ElementwiseOperators.truth("GreaterOrEqual"), "GE");
        add(ElementwiseOperators.truth("Equal"), "EQ");
        add(ElementwiseOperators.truth("And"), "And");
        add(ElementwiseOperators.truth("Or"), "Or");
        add(ElementwiseOperators.truth("Xor"), "Xor");
        add(ElementwiseOperators::not, "Not");
        add(ElementwiseOperators::where, "Where", "Conditional");
        add(ElementwiseOperators::cast, "Cast");
        add(ElementwiseOperators.castTo(ElementType.FLOAT), "HalfToFloat");
        add(ElementwiseOperators.castTo(ElementType.FLOAT16), "FloatToHalf");
        add(ElementwiseOperators.fullyConnected(false), "FC");
        add(ElementwiseOperators.fullyConnected(true), "FCTransposed");
        add(ElementwiseOperators::matMul, "MatMul");
        add(ElementwiseOperators::batchMatMul, "BatchMatMul");
    }

    private void layout() {
        add(ShapeOperators::reshape, "Reshape");
        add(ShapeOperators::transpose, "Transpose");
        add(ShapeOperators::flatten, "Flatten");
        add(ShapeOperators::flattenToVector, "FlattenToVec");
        add(ShapeOperators::squeeze, "Squeeze");
        add(ShapeOperators::expandDims, "ExpandDims");
        add(ShapeOperators::concat, "Concat", "DepthConcat");
        add(ShapeOperators::split, "Split", "DepthSplit");
        add(ShapeOperators::slice, "Slice");
        for (String type : List.of("Sum", "Mean", "Max", "Min", "L1", "L2")) {
            add(ShapeOperators.reduce("Reduce" + type), "Reduce" + type);
        }
        for (String type : List.of("Sum", "Mean", "Max")) {
            add(ShapeOperators.reduceEnd("Reduce" + type, true), "ReduceFront" + type);
            add(ShapeOperators.reduceEnd("Reduce" + type, false), "ReduceBack" + type);
        }
        add(ShapeOperators::sumElements, "SumElements");
        add(ShapeOperators.argument("ArgMax"), "ArgMax");
        add(ShapeOperators.argument("ArgMin"), "ArgMin");
        add(ShapeOperators::topK, "TopK");
        add(ShapeOperators::gather, "Gather");
        add(ShapeOperators::shape, "Shape");
        add(ShapeOperators::tile, "Tile");
        add(ShapeOperators::normalize, "Normalize");
    }
}
