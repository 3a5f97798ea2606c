// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.huggingface.graph.EncoderGraph;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * A graph on the ONNX Runtime backend. The graph is a file in a folder of its own, beside links to the files with its weights, which
 * ONNX Runtime maps. Thread-safe; closed by the model.
 */
final class GraphRunner implements AutoCloseable {
    private static final String RUNNER = "onnxruntime";

    private final BackendModel model;
    private final Path directory;
    private final long weightBytes;

    private GraphRunner(BackendModel model, Path directory, long weightBytes) {
        this.model = model;
        this.directory = directory;
        this.weightBytes = weightBytes;
    }

    /** @param others the backends to find ONNX Runtime in when the context does not list any */
    static GraphRunner open(
            EncoderGraph graph,
            ModelLocation source,
            ModelConfig config,
            Map<String, String> parameters,
            BackendContext context,
            List<Backend> others) {
        Backend runner = runner(config, context, others);
        Path directory = null;
        boolean opened = false;
        try {
            directory = Files.createTempDirectory(Files.createDirectories(context.scratch()), "huggingface-");
            Files.write(directory.resolve("model.onnx"), graph.toModel(config.name()));
            for (Map.Entry<String, Path> file : graph.files().entrySet()) {
                link(directory.resolve(file.getKey()), file.getValue());
            }
            ModelConfig its = ModelConfig.builder(config.name())
                    .backend(RUNNER)
                    .maxBatchSize(0)
                    .inputs(graph.inputs().stream()
                            .map(name -> new TensorSpec(name, DataType.INT64, Shape.of(-1, -1)))
                            .toList())
                    .outputs(graph.outputs().entrySet().stream()
                            .map(e ->
                                    new TensorSpec(e.getKey(), DataType.FP32, open(e.getValue(), graph.outputWidth())))
                            .toList())
                    .instanceGroups(config.instanceGroups())
                    .optimization(config.optimization())
                    .parameters(parameters)
                    .build();
            Map<String, String> settings = context.settingsByBackend().getOrDefault(RUNNER, Map.of());
            BackendModel model = runner.load(
                    new ModelLocation(source.id(), source.modelDirectory(), directory),
                    its,
                    context.withSettings(settings));
            opened = true;
            return new GraphRunner(model, directory, graph.weightBytes());
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "cannot write the model's graph to " + context.scratch() + ": "
                            + e.getClass().getSimpleName(),
                    "check that the server may write there and that there is enough space",
                    e);
        } finally {
            if (!opened && directory != null) {
                delete(directory);
            }
        }
    }

    private static Shape open(int rank, long lastDimension) {
        long[] dims = new long[rank];
        Arrays.fill(dims, -1);
        dims[rank - 1] = lastDimension;
        return Shape.of(dims);
    }

    /**
     * Makes a file available under another name, without a copy where that is possible: ONNX Runtime follows no symbolic link that
     * leads out of the graph's folder, and a hard link needs the same file system.
     */
    private static void link(Path name, Path file) throws IOException {
        Path real = file.toRealPath();
        try {
            Files.createLink(name, real);
        } catch (IOException | UnsupportedOperationException e) {
            Files.copy(real, name);
        }
    }

    private static Backend runner(ModelConfig config, BackendContext context, List<Backend> others) {
        for (Backend backend : context.backends().isEmpty() ? others : context.backends()) {
            if (backend.name().equals(RUNNER)) {
                String unavailable = backend.unavailableReason();
                if (unavailable == null) {
                    return backend;
                }
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        "model '" + config.name() + "' runs on ONNX Runtime, which is not available: " + unavailable);
            }
        }
        throw ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "model '" + config.name() + "' runs on the backend '" + RUNNER + "', which this server does not have",
                "use the server's full distribution");
    }

    ModelInstance newInstance() {
        return model.newInstance();
    }

    boolean cancellable() {
        return model.traits().cancellable();
    }

    /** The bytes of the weights; ONNX Runtime may hold them in a second layout. */
    long memoryBytes() {
        return Math.max(model.memoryBytes(), weightBytes);
    }

    @Override
    public void close() {
        try {
            model.close();
        } finally {
            delete(directory);
        }
    }

    private static void delete(Path directory) {
        try (Stream<Path> files = Files.list(directory)) {
            for (Path file : files.toList()) {
                Files.deleteIfExists(file);
            }
            Files.deleteIfExists(directory);
        } catch (IOException e) {
            System.getLogger(GraphRunner.class.getName())
                    .log(System.Logger.Level.WARNING, "cannot delete the graph in " + directory, e);
        }
    }
}
