// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import static org.tensorflow.internal.c_api.global.tensorflow.*;

import io.nereid.base.ServingException;
import io.nereid.tensor.Shape;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.PointerPointer;
import org.bytedeco.javacpp.SizeTPointer;
import org.jspecify.annotations.Nullable;
import org.tensorflow.internal.c_api.TF_Buffer;
import org.tensorflow.internal.c_api.TF_Graph;
import org.tensorflow.internal.c_api.TF_ImportGraphDefOptions;
import org.tensorflow.internal.c_api.TF_Operation;
import org.tensorflow.internal.c_api.TF_Output;
import org.tensorflow.internal.c_api.TF_Session;
import org.tensorflow.internal.c_api.TF_SessionOptions;

/**
 * A TensorFlow graph and the session that runs it. Thread-safe: TensorFlow allows concurrent runs of one session. The
 * owner closes it after the last run.
 */
final class TfGraph implements AutoCloseable {
    private static final Logger LOG = System.getLogger(TfGraph.class.getName());

    private final TF_Graph graph;
    private final TF_Session session;

    private TfGraph(TF_Graph graph, TF_Session session) {
        this.graph = graph;
        this.session = session;
    }

    /**
     * One output of an operation in the graph.
     *
     * @param operation the operation's native address
     * @param kind the operation's type, such as {@code Placeholder}
     * @param index index among the operation's outputs
     * @param type TensorFlow's data type number
     * @param shape the shape that TensorFlow infers; null when the rank is unknown
     */
    record Output(
            long operation,
            String kind,
            int index,
            int type,
            @Nullable Shape shape) {}

    /** Loads a SavedModel with its variables. */
    static TfGraph ofSavedModel(String model, Path directory, Collection<String> tags, TfSettings settings) {
        List<BytePointer> texts = new ArrayList<>();
        try (TfStatus status = new TfStatus();
                BytePointer path = text(directory.toString());
                PointerPointer<BytePointer> set = new PointerPointer<>(Math.max(1, tags.size()))) {
            for (String tag : tags) {
                BytePointer text = text(tag);
                set.put(texts.size(), text);
                texts.add(text);
            }
            TF_SessionOptions options = options(settings, status);
            TF_Graph graph = TF_NewGraph();
            TF_Session session = null;
            try {
                session = TF_LoadSessionFromSavedModel(
                        options, null, path, set, tags.size(), graph, null, status.handle());
                if (status.failed() || session == null) {
                    throw TfErrors.loading(model, directory, status);
                }
                return new TfGraph(graph, session);
            } finally {
                if (session == null) {
                    TF_DeleteGraph(graph);
                }
                TF_DeleteSessionOptions(options);
            }
        } finally {
            texts.forEach(BytePointer::close);
        }
    }

    /** Loads a serialised, frozen GraphDef, whose weights are constants of the graph. */
    static TfGraph ofGraphDef(String model, Path file, TfSettings settings) throws IOException {
        byte[] bytes = Files.readAllBytes(file);
        try (TfStatus status = new TfStatus();
                BytePointer data = new BytePointer(bytes)) {
            TF_Buffer buffer = TF_NewBufferFromString(data, bytes.length);
            TF_ImportGraphDefOptions importing = TF_NewImportGraphDefOptions();
            TF_SessionOptions options = options(settings, status);
            TF_Graph graph = TF_NewGraph();
            TF_Session session = null;
            try {
                TF_GraphImportGraphDef(graph, buffer, importing, status.handle());
                if (status.failed()) {
                    throw TfErrors.loading(model, file, status);
                }
                session = TF_NewSession(graph, options, status.handle());
                if (status.failed() || session == null) {
                    throw TfErrors.loading(model, file, status);
                }
                return new TfGraph(graph, session);
            } finally {
                if (session == null) {
                    TF_DeleteGraph(graph);
                }
                TF_DeleteSessionOptions(options);
                TF_DeleteImportGraphDefOptions(importing);
                TF_DeleteBuffer(buffer);
            }
        }
    }

    private static BytePointer text(String text) {
        byte[] bytes = (text + '\0').getBytes(StandardCharsets.UTF_8);
        return new BytePointer(bytes);
    }

    private static TF_SessionOptions options(TfSettings settings, TfStatus status) {
        byte[] config = settings.config();
        TF_SessionOptions options = TF_NewSessionOptions();
        try (BytePointer bytes = new BytePointer(config)) {
            TF_SetConfig(options, bytes, config.length, status.handle());
        }
        if (status.failed()) {
            TF_DeleteSessionOptions(options);
            throw new IllegalStateException("TensorFlow rejects the session options: " + status.text());
        }
        return options;
    }

    TF_Session session() {
        return session;
    }

    /** Finds the output with the name {@code operation:output}, or returns null when the graph does not have it. */
    @Nullable Output output(String tensor) {
        int colon = tensor.lastIndexOf(':');
        String name = colon < 0 ? tensor : tensor.substring(0, colon);
        int index;
        try {
            index = colon < 0 ? 0 : Integer.parseInt(tensor.substring(colon + 1));
        } catch (NumberFormatException e) {
            return null;
        }
        try (BytePointer text = text(name)) {
            TF_Operation operation = TF_GraphOperationByName(graph, text);
            return operation == null || index < 0 || index >= TF_OperationNumOutputs(operation)
                    ? null
                    : output(operation, index);
        }
    }

    private Output output(TF_Operation operation, int index) {
        try (TfStatus status = new TfStatus();
                TF_Output output = new TF_Output()) {
            output.oper(operation).index(index);
            int rank = TF_GraphGetTensorNumDims(graph, output, status.handle());
            Shape shape = null;
            if (!status.failed() && rank >= 0) {
                long[] dims = new long[Math.max(1, rank)];
                TF_GraphGetTensorShape(graph, output, dims, rank, status.handle());
                if (!status.failed()) {
                    shape = Shape.of(java.util.Arrays.copyOf(dims, rank));
                }
            }
            return new Output(
                    operation.address(),
                    TF_OperationOpType(operation).getString(),
                    index,
                    TF_OperationOutputType(output),
                    shape);
        }
    }

    /**
     * The likely inputs or outputs of a graph without signatures, in the graph's order: its placeholders, or the
     * outputs of operations that no other operation consumes.
     *
     * @param inputs true for the placeholders, false for the outputs
     */
    List<String> ends(boolean inputs) {
        List<String> ends = new ArrayList<>();
        try (SizeTPointer position = new SizeTPointer(1);
                TF_Output output = new TF_Output()) {
            position.put(0L);
            for (TF_Operation op = TF_GraphNextOperation(graph, position);
                    op != null;
                    op = TF_GraphNextOperation(graph, position)) {
                String kind = TF_OperationOpType(op).getString();
                String name = TF_OperationName(op).getString();
                boolean fed = kind.equals("Placeholder");
                if (inputs) {
                    if (fed) {
                        ends.add(name);
                    }
                    continue;
                }
                int outputs = TF_OperationNumOutputs(op);
                boolean unused = outputs > 0 && TF_OperationNumControlOutputs(op) == 0;
                for (int i = 0; unused && i < outputs; i++) {
                    unused = TF_OperationOutputNumConsumers(output.oper(op).index(i)) == 0;
                }
                for (int i = 0; unused && !fed && !kind.equals("Const") && i < outputs; i++) {
                    ends.add(i == 0 ? name : name + ":" + i);
                }
            }
        }
        return ends;
    }

    @Override
    public void close() {
        try (TfStatus status = new TfStatus()) {
            TF_CloseSession(session, status.handle());
            if (status.failed()) {
                LOG.log(Level.WARNING, "cannot close a TensorFlow session: {0}", status.text());
            }
            TF_DeleteSession(session, status.handle());
            TF_DeleteGraph(graph);
        }
    }

    /** An exception for a model that cannot be served. */
    static ServingException rejected(String model, String why, String remedy) {
        return ServingException.invalidArgument("unable to load model '" + model + "': " + why, remedy);
    }
}
