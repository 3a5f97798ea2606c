// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.mxnet;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.onnximport.caffe2.Caffe2Backend;
import io.nereid.backends.onnximport.caffe2.Caffe2Converter;
import io.nereid.backends.onnximport.caffe2.NetDef;
import io.nereid.backends.onnximport.onnx.ConstantTensor;
import io.nereid.backends.onnximport.onnx.OnnxDelegate;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Serves MXNet models: {@code NAME-symbol.json} with {@code NAME-0000.params}. A graph is converted to Caffe2's
 * operators, and from these to an ONNX model, which ONNX Runtime runs. Immutable, therefore thread-safe.
 */
public final class MxnetBackend implements Backend {
    static final String NAME = "mxnet";
    static final String PLATFORM = "mxnet_mxnet";

    private static final String SYMBOL = "-symbol.json";
    private static final int HEAD = 4096;

    private final List<Backend> others;

    /** For {@link java.util.ServiceLoader}. */
    public MxnetBackend() {
        this(List.of());
    }

    /** @param others the backends to find ONNX Runtime in when the context does not list any, for tests */
    public MxnetBackend(List<Backend> others) {
        this.others = List.copyOf(others);
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public List<String> platforms() {
        return List.of(PLATFORM);
    }

    @Override
    public List<String> defaultFiles() {
        return List.of("model" + SYMBOL);
    }

    @Override
    public boolean recognises(Path file) {
        if (!file.getFileName().toString().endsWith(SYMBOL)) {
            return false;
        }
        try (InputStream in = Files.newInputStream(file)) {
            String head = new String(in.readNBytes(HEAD), StandardCharsets.ISO_8859_1).stripLeading();
            return head.startsWith("{") && head.contains("\"nodes\"");
        } catch (IOException e) {
            return false;
        }
    }

    @Override
    public @Nullable String unavailableReason() {
        return null;
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        Path file = find(source.versionDirectory(), config.modelFile());
        Path weights = weights(file);
        MxnetSymbol symbol;
        Map<String, ConstantTensor> arrays;
        try {
            symbol = MxnetSymbol.parse(Caffe2Backend.bytes(file, "put NAME" + SYMBOL + " there"));
        } catch (ServingException e) {
            throw Caffe2Backend.rejected(
                    file, e.getMessage(), e.remedy() == null ? "export the model again" : e.remedy());
        }
        if (symbol.nodes().isEmpty() || symbol.heads().isEmpty()) {
            throw Caffe2Backend.rejected(file, "it has no nodes or no heads", "put the graph of a model there");
        }
        try {
            arrays = MxnetParameters.parse(Caffe2Backend.bytes(weights, "put the weights beside the graph"));
        } catch (ServingException e) {
            throw Caffe2Backend.rejected(
                    weights, e.getMessage(), e.remedy() == null ? "export the model again" : e.remedy());
        }
        byte[] onnx;
        try {
            MxnetConverter graph = new MxnetConverter(symbol, arrays);
            NetDef net = graph.net();
            onnx = new Caffe2Converter(graph.init(), net, config).convert();
        } catch (ServingException e) {
            throw Caffe2Backend.rejected(file, e.getMessage(), e.remedy());
        } catch (IndexOutOfBoundsException e) {
            throw Caffe2Backend.rejected(file, "one of its nodes has too few inputs", "export the model again");
        } catch (IllegalStateException e) {
            throw Caffe2Backend.rejected(
                    file, "as an ONNX model it has 2 GiB or more", "export the model to ONNX with external data");
        }
        return new OnnxDelegate(NAME, PLATFORM, others).run(onnx, source, config, context);
    }

    private Path find(Path directory, String modelFile) {
        String name = modelFile.isEmpty() ? "model" + SYMBOL : modelFile;
        Path file = directory.resolve(name).normalize();
        if (!file.startsWith(directory.normalize())) {
            throw ServingException.invalidArgument(
                    "model file '" + modelFile + "' lies outside the version's directory",
                    "name a file inside " + directory);
        }
        return file;
    }

    /** Finds the weights of the last epoch: {@code NAME-0010.params} rather than {@code NAME-0000.params}. */
    private static Path weights(Path file) {
        String name = file.getFileName().toString();
        String stem = name.endsWith(SYMBOL) ? name.substring(0, name.length() - SYMBOL.length()) : name;
        try (Stream<Path> all = Files.list(file.toAbsolutePath().getParent())) {
            return all.filter(f -> f.getFileName().toString().startsWith(stem + "-")
                            && f.getFileName().toString().endsWith(".params"))
                    .max(Path::compareTo)
                    .orElse(file.resolveSibling(stem + "-0000.params"));
        } catch (IOException e) {
            return file.resolveSibling(stem + "-0000.params");
        }
    }
}
