// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.input;

import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufReader;
import io.nereid.protobuf.StringInterner;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import io.nereid.tfdata.ModelSpec;
import io.nereid.tfdata.PredictMessageReader;
import io.nereid.tfdata.PredictionLog;
import io.nereid.tfdata.TfRecordFile;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Recorded requests: TFRecord files of PredictionLog, as a model's {@code logging_config} writes them. Their batches are sent as
 * they were recorded. Stateless.
 */
public final class RecordedInputs {
    private RecordedInputs() {}

    /**
     * Reads the predict requests of a file; records of other kinds are left out.
     *
     * @throws ServingException for an invalid file or record, which the message names
     */
    public static List<RequestSample> read(Path file) {
        List<RequestSample> samples = new ArrayList<>();
        int number = 0;
        try (TfRecordFile.Reader reader = new TfRecordFile.Reader(file)) {
            for (byte[] record = reader.next(); record != null; record = reader.next()) {
                String where = file + " record " + number++;
                try {
                    PredictionLog log = PredictionLog.parse(record);
                    if (log.kind() == PredictionLog.Kind.PREDICT) {
                        samples.add(sample(log.request()));
                    }
                } catch (ServingException e) {
                    throw ServingException.invalidArgument(where + " cannot be sent: " + e.getMessage(), e.remedy());
                }
            }
        }
        if (samples.isEmpty()) {
            throw ServingException.invalidArgument(
                    "--data '" + file + "' has no predict requests (expected: a file that logging_config has written)");
        }
        return samples;
    }

    /**
     * The inputs of a recorded predict request.
     *
     * @param request the request of a {@link PredictionLog} of the kind PREDICT
     */
    public static RequestSample sample(byte[] request) {
        MemoryRegion region = MemoryRegion.copyOf(request, 0, request.length);
        List<Tensor> tensors = List.of();
        try {
            PredictMessageReader message = new PredictMessageReader(new ProtobufReader(), new StringInterner());
            message.scanRequest(region);
            List<String> outputs =
                    message.filter().stream().map(RequestedOutput::name).toList();
            ModelSpec spec = message.spec();
            tensors = message.tensors();
            List<TensorData> inputs = new ArrayList<>();
            for (Tensor tensor : tensors) {
                byte[] bytes = new byte[tensor.byteLength()];
                tensor.buffer().get(bytes);
                inputs.add(new TensorData(tensor.name(), tensor.dataType(), tensor.shape(), bytes));
            }
            return new RequestSample(List.copyOf(inputs), outputs, spec == null ? "" : spec.signature());
        } finally {
            Tensor.closeAll(tensors);
            region.release();
        }
    }
}
