// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.replay;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.client.ServerClient;
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
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Recorded requests, read from files and encoded as Open Inference requests with binary tensors. Immutable once read.
 */
final class ReplayLog {
    /**
     * One request. Immutable, provided that callers do not write to the arrays.
     *
     * @param where file and record number, as {@code FILE record 3}
     * @param path the path to which it is posted
     * @param body the request's JSON, then its tensors
     * @param jsonLength length of the JSON in bytes
     * @param seconds the time of the recording
     * @param log the recorded request and response
     */
    @SuppressWarnings("ArrayRecordComponent")
    record Item(String where, String path, byte[] body, int jsonLength, long seconds, PredictionLog log) {}

    private final List<Item> items = new ArrayList<>();
    private final Map<String, Integer> skipped = new TreeMap<>();
    private int unanswered;

    /**
     * Reads files.
     *
     * @param model the model to call instead of the recorded one; null for the recorded one
     * @throws ServingException for an invalid file or record, which the message names
     */
    static ReplayLog read(List<Path> files, @Nullable String model) {
        ReplayLog all = new ReplayLog();
        for (Path file : files) {
            int count = 0;
            try (TfRecordFile.Reader reader = new TfRecordFile.Reader(file)) {
                for (byte[] record = reader.next(); record != null; record = reader.next()) {
                    all.add(file + " record " + count++, record, model);
                }
            }
            if (count == 0) {
                throw ServingException.invalidArgument("'" + file + "' has no records");
            }
        }
        return all;
    }

    private void add(String where, byte[] record, @Nullable String model) {
        try {
            PredictionLog log = PredictionLog.parse(record);
            switch (log.kind()) {
                case PREDICT -> items.add(item(where, log, model));
                case NONE ->
                    throw ServingException.invalidArgument(
                            "it is not a PredictionLog", "expected: files that logging_config has written");
                default -> skipped.merge(log.kind().fieldName(), 1, Integer::sum);
            }
            if (log.kind() == PredictionLog.Kind.PREDICT && log.response() == null) {
                unanswered++;
            }
        } catch (ServingException e) {
            throw ServingException.invalidArgument(where + " cannot be replayed: " + e.getMessage(), e.remedy());
        }
    }

    private static Item item(String where, PredictionLog log, @Nullable String model) {
        MemoryRegion region = MemoryRegion.copyOf(log.request(), 0, log.request().length);
        List<Tensor> inputs = List.of();
        try {
            PredictMessageReader message = new PredictMessageReader(new ProtobufReader(), new StringInterner());
            message.scanRequest(region);
            List<RequestedOutput> requested = message.filter();
            ModelSpec spec = message.spec();
            inputs = message.tensors();
            ObjectNode json = ServerClient.JSON.createObjectNode();
            ObjectNode parameters = json.putObject("parameters");
            parameters.put("binary_data_output", true);
            if (spec != null && !spec.signature().isEmpty()) {
                parameters.put("signature_name", spec.signature());
            }
            ArrayNode list = json.putArray("inputs");
            int bytes = 0;
            for (Tensor input : inputs) {
                ObjectNode each = list.addObject();
                each.put("name", input.name());
                each.put("datatype", input.dataType().name());
                ArrayNode shape = each.putArray("shape");
                for (int i = 0; i < input.shape().rank(); i++) {
                    shape.add(input.shape().dim(i));
                }
                each.putObject("parameters").put("binary_data_size", input.byteLength());
                bytes += input.byteLength();
            }
            if (!requested.isEmpty()) {
                ArrayNode outputs = json.putArray("outputs");
                requested.forEach(output -> outputs.addObject()
                        .put("name", output.name())
                        .putObject("parameters")
                        .put("binary_data", true));
            }
            byte[] head = json.toString().getBytes(StandardCharsets.UTF_8);
            ByteBuffer body =
                    ByteBuffer.allocate(Math.addExact(head.length, bytes)).put(head);
            for (Tensor input : inputs) {
                body.put(input.buffer());
            }
            return new Item(where, path(spec, log.model(), model), body.array(), head.length, log.timestampSecs(), log);
        } finally {
            Tensor.closeAll(inputs);
            region.release();
        }
    }

    private static String path(@Nullable ModelSpec asked, @Nullable ModelSpec logged, @Nullable String model) {
        if (model != null) {
            return "/v2/models/" + ServerClient.segment(model) + "/infer";
        }
        ModelSpec spec = asked == null || asked.name().isEmpty() ? logged : asked;
        if (spec == null || spec.name().isEmpty()) {
            throw ServingException.invalidArgument("it does not name a model", "set it with --model NAME");
        }
        String version =
                spec.label() != null ? spec.label() : spec.version() < 0 ? null : Long.toString(spec.version());
        return "/v2/models/" + ServerClient.segment(spec.name())
                + (version == null ? "" : "/versions/" + ServerClient.segment(version)) + "/infer";
    }

    List<Item> items() {
        return items;
    }

    /** Returns the number of records of each kind that cannot be replayed. */
    Map<String, Integer> skipped() {
        return skipped;
    }

    /** Returns the number of requests without a recorded response. */
    int unanswered() {
        return unanswered;
    }

    /**
     * Returns the recorded time of each request, in seconds after the first one. Records have a resolution of one
     * second, so the requests of a second are spread evenly over it.
     */
    double[] recordedSeconds() {
        Map<Long, Integer> each = new TreeMap<>();
        items.forEach(item -> each.merge(item.seconds(), 1, Integer::sum));
        long first = Long.MAX_VALUE;
        for (Item item : items) {
            first = Math.min(first, item.seconds());
        }
        Map<Long, Integer> seen = new TreeMap<>();
        double[] due = new double[items.size()];
        for (int i = 0; i < due.length; i++) {
            long at = items.get(i).seconds();
            int before = seen.merge(at, 1, Integer::sum) - 1;
            due[i] = at - first + (double) before / each.getOrDefault(at, 1);
        }
        return due;
    }
}
