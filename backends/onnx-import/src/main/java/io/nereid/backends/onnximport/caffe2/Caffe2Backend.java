// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.caffe2;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.onnximport.onnx.OnnxDelegate;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Serves Caffe2 nets: {@code model.netdef} with {@code init_model.netdef}, or {@code predict_net.pb} with
 * {@code init_net.pb}. A net is converted to an ONNX model when it is loaded, and ONNX Runtime runs that. Immutable,
 * therefore thread-safe.
 */
public final class Caffe2Backend implements Backend {
    static final String NAME = "caffe2";
    static final String PLATFORM = "caffe2_netdef";

    private static final String NETDEF = "model.netdef";
    private static final String PREDICT = "predict_net.pb";
    private static final String INIT = "init_";

    private final List<Backend> others;

    /** For {@link java.util.ServiceLoader}. */
    public Caffe2Backend() {
        this(List.of());
    }

    /** @param others the backends to find ONNX Runtime in when the context does not list any, for tests */
    public Caffe2Backend(List<Backend> others) {
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
        return List.of(NETDEF, PREDICT);
    }

    /** Decides by the name: other formats use the same extensions, and a net does not have a fixed first field. */
    @Override
    public boolean recognises(Path file) {
        String name = file.getFileName().toString();
        return name.endsWith(PREDICT) || (name.endsWith(".netdef") && !name.startsWith(INIT));
    }

    @Override
    public @Nullable String unavailableReason() {
        return null;
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        Path file = find(source.versionDirectory(), config.modelFile());
        NetDef net = read(file);
        if (net.operators().isEmpty()) {
            throw rejected(file, "it has no operators, so it is not a Caffe2 net", "put the net for inference there");
        }
        Path weights = initBeside(file);
        NetDef init = Files.exists(weights) ? read(weights) : new NetDef("", List.of(), List.of(), List.of());
        String missing = Caffe2Converter.missing(init);
        if (missing != null) {
            throw rejected(weights, "it declares '" + missing + "', but does not contain it", "export the model again");
        }
        byte[] onnx;
        try {
            onnx = new Caffe2Converter(init, net, config).convert();
        } catch (ServingException e) {
            throw rejected(file, e.getMessage(), e.remedy());
        } catch (IllegalStateException e) {
            throw rejected(
                    file, "as an ONNX model it has 2 GiB or more", "export the model to ONNX with external data");
        }
        return new OnnxDelegate(NAME, PLATFORM, others).run(onnx, source, config, context);
    }

    private Path find(Path directory, String modelFile) {
        if (!modelFile.isEmpty()) {
            Path given = directory.resolve(modelFile).normalize();
            if (!given.startsWith(directory.normalize())) {
                throw ServingException.invalidArgument(
                        "model file '" + modelFile + "' lies outside the version's directory",
                        "name a file inside " + directory);
            }
            return given;
        }
        for (String name : defaultFiles()) {
            if (Files.exists(directory.resolve(name))) {
                return directory.resolve(name);
            }
        }
        return directory.resolve(NETDEF);
    }

    /** {@code init_model.netdef} for {@code model.netdef}, {@code x_init_net.pb} for {@code x_predict_net.pb}. */
    private static Path initBeside(Path file) {
        String name = file.getFileName().toString();
        return file.resolveSibling(
                name.endsWith(PREDICT)
                        ? name.substring(0, name.length() - PREDICT.length()) + "init_net.pb"
                        : INIT + name);
    }

    /** Reads a model file; rejects an empty file and a Git LFS pointer. */
    public static byte[] bytes(Path file, String remedy) {
        byte[] bytes;
        try {
            bytes = Files.readAllBytes(file);
        } catch (IOException | OutOfMemoryError e) {
            throw ServingException.invalidArgument(
                    "cannot read model file '" + file + "': " + e.getClass().getSimpleName(),
                    Files.exists(file)
                            ? "check that the server may read it, and that it is smaller than 2 GiB"
                            : remedy);
        }
        if (bytes.length == 0) {
            throw rejected(file, "the file is empty (0 bytes)", remedy);
        }
        String head = new String(bytes, 0, Math.min(64, bytes.length), StandardCharsets.ISO_8859_1);
        if (head.startsWith("version https://git-lfs")) {
            throw rejected(file, "the file is a Git LFS pointer, not the model itself (run 'git lfs pull')", remedy);
        }
        return bytes;
    }

    private static NetDef read(Path file) {
        byte[] bytes = bytes(file, "put the net there as " + NETDEF + " or " + PREDICT + ", its weights beside it");
        NetDef net;
        try {
            net = NetDef.parse(bytes);
        } catch (ServingException e) {
            throw rejected(file, e.getMessage(), "the file is damaged or not a Caffe2 net: export the model again");
        }
        for (NetDef.Operator operator : net.operators()) {
            if (operator.type().isEmpty() || operator.type().chars().anyMatch(c -> c < ' ' || c > '~')) {
                throw rejected(file, "it has an operator without a type", "the file is damaged or not a Caffe2 net");
            }
        }
        return net;
    }

    public static ServingException rejected(Path file, String why, @Nullable String remedy) {
        return ServingException.invalidArgument("model file '" + file + "' cannot be loaded: " + why, remedy);
    }
}
