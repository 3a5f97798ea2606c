// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.data;

import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.InputFile;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tfdata.Example;
import io.nereid.tfdata.Feature;
import io.nereid.tfdata.ModelSpec;
import io.nereid.tfdata.PredictionLog;
import io.nereid.tfdata.TensorProtoCodec;
import io.nereid.tfdata.TfRecordFile;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** The data formats of TensorFlow. What is written of a value that was read is read as the same value. Confined to one thread. */
public final class TfDataTarget implements FuzzTarget {
    /** What the bytes of an input are. */
    public enum Form {
        TENSOR,
        EXAMPLE,
        RECORD_FILE,
        PREDICTION_LOG
    }

    private static final ModelMetadata MODEL = new ModelMetadata(
            new ServableId("m", 1),
            "p",
            List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1))),
            List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1))),
            0,
            Map.of());

    private static final int MOST_WRITTEN = 1 << 20;

    private final Form form;
    private final InputFile file = new InputFile("records");

    public TfDataTarget(Form form) {
        this.form = form;
    }

    @Override
    public void read(byte[] input) throws IOException {
        switch (form) {
            case TENSOR -> tensor(input);
            case EXAMPLE -> example(input);
            case RECORD_FILE -> {
                List<byte[]> records = TfRecordFile.readAll(file.with(input), 100);
                ByteArrayOutputStream out = new ByteArrayOutputStream();
                try (TfRecordFile.Writer writer = new TfRecordFile.Writer(out)) {
                    for (byte[] record : records) {
                        writer.write(record);
                    }
                }
                if (!Arrays.equals(out.toByteArray(), input)) {
                    throw new AssertionError("records that were read are written with other bytes");
                }
            }
            case PREDICTION_LOG -> log(input);
        }
    }

    private static void tensor(byte[] input) {
        try (Tensor tensor = TensorProtoCodec.parse("t", input)) {
            if (tensor.byteLength() > MOST_WRITTEN) {
                return;
            }
            for (boolean content : new boolean[] {false, true}) {
                byte[] written = TensorProtoCodec.toBytes(tensor, content);
                try (Tensor again = TensorProtoCodec.parse("t", written)) {
                    if (!again.shape().equals(tensor.shape())
                            || again.dataType() != tensor.dataType()
                            || !again.buffer().equals(tensor.buffer())) {
                        throw new AssertionError("a tensor of " + tensor.dataType() + " and shape " + tensor.shape()
                                + " is written and read as " + again.dataType() + " and shape " + again.shape());
                    }
                }
            }
        }
    }

    private static void example(byte[] input) {
        Example example = Example.parse(input);
        byte[] written = example.toBytes();
        byte[] again = Example.parse(written).toBytes();
        if (!Arrays.equals(written, again)) {
            throw new AssertionError("an example is written, read and written with other bytes");
        }
    }

    private static void log(byte[] input) {
        PredictionLog log = PredictionLog.parse(input);
        byte[] written = log.toBytes();
        if (!Arrays.equals(written, PredictionLog.parse(written).toBytes())) {
            throw new AssertionError("a log is written, read and written with other bytes");
        }
        for (InferenceRequest request : log.requests(MODEL)) {
            request.release();
        }
        Tensor.closeAll(log.outputs());
    }

    @Override
    public List<byte[]> seeds() {
        try {
            return switch (form) {
                case TENSOR ->
                    List.of(
                            proto(
                                    Tensor.ofDoubles("x", DataType.FP32, Shape.of(2, 2), new double[] {1, 2, 3, 4}),
                                    true),
                            proto(Tensor.ofDoubles("x", DataType.INT64, Shape.of(3), new double[] {1, -2, 300}), false),
                            proto(Tensor.allocate("x", DataType.FP16, Shape.of(2)), false),
                            proto(Tensor.ofDoubles("x", DataType.BOOL, Shape.of(2), new double[] {1, 0}), false),
                            proto(Tensor.ofBytes("x", Shape.of(2), new byte[][] {{1, 2}, {}}), false));
                case EXAMPLE -> List.of(example().toBytes());
                case RECORD_FILE -> List.of(records());
                case PREDICTION_LOG ->
                    List.of(
                            predict(),
                            new PredictionLog(
                                            PredictionLog.Kind.CLASSIFY,
                                            ModelSpec.of("m"),
                                            0.5,
                                            7,
                                            classification(),
                                            new byte[0])
                                    .toBytes());
            };
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    private static byte[] proto(Tensor tensor, boolean content) {
        try (tensor) {
            return TensorProtoCodec.toBytes(tensor, content);
        }
    }

    private static Example example() {
        return new Example(
                Map.of("x", Feature.ofFloats(1.5f, 2), "y", Feature.ofLongs(1, -1), "z", Feature.ofTexts("a", "")));
    }

    private static byte[] records() throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (TfRecordFile.Writer writer = new TfRecordFile.Writer(out)) {
            writer.write(new byte[] {1, 2, 3});
            writer.write(new byte[0]);
        }
        return out.toByteArray();
    }

    private static byte[] predict() {
        try (Tensor x = Tensor.ofDoubles("x", DataType.FP32, Shape.of(2), new double[] {1, 2})) {
            ProtobufWriter writer = new ProtobufWriter();
            writer.reset(256);
            PredictionLog.writePredict(
                    writer, ModelSpec.of("m"), ModelSpec.of("m", 1, ""), List.of(x), List.of("x"), List.of(x), 1, 7);
            return writer.toByteArray();
        }
    }

    /** A ClassificationRequest of one example. */
    private static byte[] classification() {
        byte[] example = example().toBytes();
        ProtobufWriter writer = new ProtobufWriter();
        writer.reset(256);
        int input = writer.begin(2);
        int list = writer.begin(1);
        writer.bytesField(1, example);
        writer.end(list);
        writer.end(input);
        return writer.toByteArray();
    }

    /** A tensor may repeat its last value, up to a limit that has a name. */
    @Override
    public long allocationLimit(int length) {
        return TensorProtoCodec.EXPANSION_LIMIT + (4L << 20) + 256L * length;
    }
}
