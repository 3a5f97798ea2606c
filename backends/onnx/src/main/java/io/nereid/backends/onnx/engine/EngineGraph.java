// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx.engine;

import io.nereid.protobuf.ProtobufWriter;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.List;

/**
 * The ONNX model through which ONNX Runtime runs an engine of TensorRT: one node {@code EPContext} of the domain
 * {@code com.microsoft}, whose inputs and outputs are those of the engine. Stateless.
 *
 * <p>The node names the engine's file instead of having its bytes ({@code embed_mode} 0), so that the engine is read once and may be
 * larger than the 2 GB of a protobuf message. ONNX Runtime accepts a file beside the model or below it only. The operator is
 * documented in ONNX Runtime's ContribOperators.md, the fields of the messages in onnx.proto.
 */
public final class EngineGraph {
    private static final int IR_VERSION = 8;
    private static final int OPSET = 17;

    /** The execution provider that the node is for: others must not take it. */
    private static final String PROVIDER = "TensorrtExecutionProvider";

    private EngineGraph() {}

    /**
     * Writes the model.
     *
     * @param config the configuration of the engine's model, with the names, types and shapes of all its inputs and outputs; with
     *     batching they get a first dimension of any size
     * @param file the name of the engine's file, which is in the directory of the ONNX model
     * @return the bytes of an ONNX {@code ModelProto}
     */
    public static byte[] of(ModelConfig config, String file) {
        List<TensorSpec> inputs = config.modelInputs();
        List<TensorSpec> outputs = config.modelOutputs();
        ProtobufWriter out = new ProtobufWriter();
        out.varintField(1, IR_VERSION);
        out.textField(2, "nereid");
        opset(out, "", OPSET);
        opset(out, "com.microsoft", 1);
        int graph = out.begin(7);
        int node = out.begin(1);
        inputs.forEach(input -> out.presentTextField(1, input.name()));
        outputs.forEach(output -> out.presentTextField(2, output.name()));
        out.presentTextField(3, "engine");
        out.presentTextField(4, "EPContext");
        number(out, "main_context", 1);
        number(out, "embed_mode", 0);
        text(out, "ep_cache_context", file);
        text(out, "source", PROVIDER);
        out.presentTextField(7, "com.microsoft");
        out.end(node);
        out.presentTextField(2, "engine");
        inputs.forEach(input -> value(out, 11, input, config.batched()));
        outputs.forEach(output -> value(out, 12, output, config.batched()));
        out.end(graph);
        return out.toByteArray();
    }

    private static void opset(ProtobufWriter out, String domain, long version) {
        int at = out.begin(8);
        out.presentTextField(1, domain);
        out.varintField(2, version);
        out.end(at);
    }

    /** An {@code AttributeProto} of type INT. */
    private static void number(ProtobufWriter out, String name, long value) {
        int at = out.begin(5);
        out.presentTextField(1, name);
        out.varintField(3, value);
        out.varintField(20, 2);
        out.end(at);
    }

    /** An {@code AttributeProto} of type STRING. */
    private static void text(ProtobufWriter out, String name, String value) {
        int at = out.begin(5);
        out.presentTextField(1, name);
        out.presentTextField(4, value);
        out.varintField(20, 3);
        out.end(at);
    }

    /** A {@code ValueInfoProto}. A dimension of any size has a name, which is another one for each but the batch. */
    private static void value(ProtobufWriter out, int field, TensorSpec spec, boolean batched) {
        Shape shape = batched ? spec.modelShape().prepend(-1) : spec.modelShape();
        int info = out.begin(field);
        out.presentTextField(1, spec.name());
        int type = out.begin(2);
        int tensor = out.begin(1);
        out.varintField(1, elementType(spec.dataType()));
        int dims = out.begin(2);
        for (int i = 0; i < shape.rank(); i++) {
            int dim = out.begin(1);
            if (shape.dim(i) >= 0) {
                out.varintField(1, shape.dim(i));
            } else {
                out.presentTextField(2, batched && i == 0 ? "batch" : spec.name() + "_" + i);
            }
            out.end(dim);
        }
        out.end(dims);
        out.end(tensor);
        out.end(type);
        out.end(info);
    }

    /** The number in ONNX's {@code TensorProto.DataType} of a type that {@link PlanRules#check} accepts. */
    private static long elementType(DataType type) {
        return switch (type) {
            case FP32 -> 1;
            case UINT8 -> 2;
            case INT8 -> 3;
            case INT32 -> 6;
            case INT64 -> 7;
            case BOOL -> 9;
            case FP16 -> 10;
            case BF16 -> 16;
            case UINT16, INT16, UINT32, UINT64, FP64, BYTES ->
                throw new IllegalArgumentException("TensorRT does not have tensors of type " + type);
        };
    }
}
