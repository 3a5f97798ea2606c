// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.console;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.util.RawValue;
import io.nereid.app.perf.input.RecordedInputs;
import io.nereid.app.perf.input.RequestEncoder;
import io.nereid.app.perf.input.RequestSample;
import io.nereid.base.ServingException;
import io.nereid.tfdata.PredictionLog;
import io.nereid.tfdata.TfRecordFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;

/**
 * The last requests that a model's {@code logging_config} has recorded, as requests of Open Inference, for the form of the web console.
 * Stateless.
 */
final class RecordedExamples {
    /** The most requests, and the most files that are read for them. */
    static final int MOST = 20;

    private static final int MOST_FILES = 3;

    /** Requests whose tensors are larger do not fit a form. */
    private static final int LARGEST = 1 << 18;

    private static final ObjectMapper JSON = new ObjectMapper();

    private RecordedExamples() {}

    /**
     * Reads the requests, the newest first. Blocks.
     *
     * @param files the newest first; the last record of a file may not be complete
     */
    static String of(List<Path> files) {
        ObjectNode document = JSON.createObjectNode();
        ArrayNode examples = document.putArray("examples");
        for (Path file : files.subList(0, Math.min(MOST_FILES, files.size()))) {
            Deque<byte[]> last = new ArrayDeque<>();
            read(file, last);
            while (!last.isEmpty() && examples.size() < MOST) {
                RequestSample sample = RecordedInputs.sample(last.removeLast());
                String request = new String(RequestEncoder.json(sample).bytes(), StandardCharsets.UTF_8);
                examples.addRawValue(new RawValue(request));
            }
        }
        return document.toString();
    }

    /** The last predict requests of a file. */
    private static void read(Path file, Deque<byte[]> last) {
        try (TfRecordFile.Reader reader = new TfRecordFile.Reader(file)) {
            for (byte[] record = reader.next(); record != null; record = reader.next()) {
                PredictionLog log = PredictionLog.parse(record);
                if (log.kind() == PredictionLog.Kind.PREDICT && log.request().length <= LARGEST) {
                    if (last.size() == MOST) {
                        last.removeFirst();
                    }
                    last.addLast(log.request());
                }
            }
        } catch (ServingException e) {
            // The file is being written, or it has been removed: what was read before is an example all the same.
        }
    }
}
