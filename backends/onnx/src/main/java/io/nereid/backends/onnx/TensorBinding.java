// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import ai.onnxruntime.NodeInfo;
import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.SequenceInfo;
import ai.onnxruntime.TensorInfo;
import ai.onnxruntime.ValueInfo;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * An input or output of a loaded ONNX graph. Immutable.
 *
 * @param name its name in the graph
 * @param dataType type of its elements
 * @param shape its dimensions, -1 for any size
 * @param dimNames the symbolic name of each dimension, empty where it does not have one
 * @param mapKeys the keys in column order, for the output of a ZipMap node: a sequence of maps, which is served as a
 *     matrix of scores; else null
 */
record TensorBinding(
        String name,
        DataType dataType,
        Shape shape,
        List<String> dimNames,
        @Nullable List<String> mapKeys) {

    /** The inputs of a graph, in its order. */
    static List<TensorBinding> inputs(OrtSession session, OnnxFile file, OrtRuntime runtime) throws OrtException {
        List<TensorBinding> ports = new ArrayList<>();
        for (NodeInfo node : infos(session, true, file.path()).values()) {
            if (!(node.getInfo() instanceof TensorInfo info)) {
                throw OnnxFile.rejected(
                        file.path(),
                        "input '" + node.getName() + "' is " + kind(node.getInfo()) + ", and only tensors can be sent",
                        "export the model with tensors as inputs");
            }
            TensorBinding port = tensor("input", node.getName(), info, file.path());
            if (!runtime.canWrap(port.dataType)) {
                throw OnnxFile.rejected(
                        file.path(),
                        "input '" + port.name + "' is of type " + port.dataType
                                + ", which this build of ONNX Runtime does not accept from Java",
                        "export the model with an input of a signed type");
            }
            ports.add(port);
        }
        return List.copyOf(ports);
    }

    /** The outputs of a graph, in its order. */
    static List<TensorBinding> outputs(OrtSession session, OnnxFile file) throws OrtException {
        List<TensorBinding> ports = new ArrayList<>();
        for (NodeInfo node : infos(session, false, file.path()).values()) {
            ports.add(
                    node.getInfo() instanceof TensorInfo info
                            ? tensor("output", node.getName(), info, file.path())
                            : maps(node, file));
        }
        return List.copyOf(ports);
    }

    private static Map<String, NodeInfo> infos(OrtSession session, boolean inputs, Path file) throws OrtException {
        try {
            return inputs ? session.getInputInfo() : session.getOutputInfo();
        } catch (OrtException e) {
            String side = inputs ? "an input" : "an output";
            throw OnnxFile.rejected(
                    file,
                    side + " is of an ONNX type that cannot be served: " + OrtErrors.text(e),
                    "export the model with tensors only; optional and sparse values are not served");
        }
    }

    private static TensorBinding tensor(String side, String name, TensorInfo info, Path file) {
        DataType type = switch (info.onnxType) {
            case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8 -> DataType.UINT8;
            case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8 -> DataType.INT8;
            case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16 -> DataType.UINT16;
            case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16 -> DataType.INT16;
            case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32 -> DataType.UINT32;
            case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32 -> DataType.INT32;
            case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64 -> DataType.UINT64;
            case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 -> DataType.INT64;
            case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 -> DataType.FP16;
            case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 -> DataType.BF16;
            case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT -> DataType.FP32;
            case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE -> DataType.FP64;
            case ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING -> DataType.BYTES;
            case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL -> DataType.BOOL;
            case ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED,
                    ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64,
                    ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128,
                    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN,
                    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ,
                    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2,
                    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ -> null;
        };
        if (type == null) {
            String raw = info.onnxType
                    .name()
                    .replace("ONNX_TENSOR_ELEMENT_DATA_TYPE_", "")
                    .toLowerCase(Locale.ROOT);
            throw OnnxFile.rejected(
                    file,
                    side + " '" + name + "' has elements of type "
                            + (raw.equals("undefined") ? "unknown to the server" : raw)
                            + ", which cannot be served (float8, int4 and complex numbers have no wire type)",
                    "add a Cast node to a type such as FP16 or FP32 and export the model again");
        }
        String[] names = info.getDimensionNames();
        List<String> dimNames = new ArrayList<>();
        for (int i = 0; i < info.getShape().length; i++) {
            dimNames.add(names != null && i < names.length && names[i] != null ? names[i] : "");
        }
        return new TensorBinding(name, type, Shape.of(info.getShape()), List.copyOf(dimNames), null);
    }

    private static TensorBinding maps(NodeInfo node, OnnxFile file) {
        List<String> keys = file.facts().classLabels().get(node.getName());
        if (keys == null
                || keys.isEmpty()
                || !(node.getInfo() instanceof SequenceInfo info)
                || !info.sequenceOfMaps
                || info.mapInfo.valueType != OnnxJavaType.FLOAT) {
            throw OnnxFile.rejected(
                    file.path(),
                    "output '" + node.getName() + "' is " + kind(node.getInfo()) + ", and only tensors can be sent",
                    "export the model with tensors as outputs (skl2onnx: options={'zipmap': False})");
        }
        return new TensorBinding(node.getName(), DataType.FP32, Shape.of(-1, keys.size()), List.of("", ""), keys);
    }

    private static String kind(ValueInfo info) {
        if (info instanceof SequenceInfo sequence) {
            return sequence.sequenceOfMaps ? "a sequence of maps" : "a sequence";
        }
        return info instanceof ai.onnxruntime.MapInfo ? "a map" : "of an unknown kind";
    }

    /** Returns the input or output of this name, or null. */
    static @Nullable TensorBinding named(List<TensorBinding> ports, String name) {
        for (TensorBinding port : ports) {
            if (port.name.equals(name)) {
                return port;
            }
        }
        return null;
    }

    static List<String> names(List<TensorBinding> ports) {
        return ports.stream().map(TensorBinding::name).toList();
    }

    /**
     * Rejects a tensor of another type or shape. ONNX Runtime would report some of these mismatches less clearly, and
     * does not check all of them.
     */
    void check(DataType givenType, Shape given) {
        if (givenType != dataType) {
            throw ServingException.invalidArgument(
                    "input '" + name + "' is of type " + givenType + " (expected: " + dataType + ")");
        }
        if (!shape.accepts(given)) {
            throw ServingException.invalidArgument(
                    "input '" + name + "' is of shape " + given + " (expected: " + shape + ")");
        }
    }
}
