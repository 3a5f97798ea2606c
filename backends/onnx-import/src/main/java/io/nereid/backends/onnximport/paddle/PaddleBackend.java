// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.paddle;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.onnximport.caffe2.Caffe2Backend;
import io.nereid.backends.onnximport.onnx.ConstantTensor;
import io.nereid.backends.onnximport.onnx.OnnxDelegate;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Serves PaddlePaddle inference models: {@code NAME.pdmodel} with {@code NAME.pdiparams}, or {@code __model__} with
 * {@code __params__} or a file for each weight. A program is converted to an ONNX model when it is loaded, and ONNX
 * Runtime runs that. Programs of PaddlePaddle 3 ({@code inference.json}) are recognised and rejected, with a remedy
 * that converts them. Immutable, therefore thread-safe.
 */
public final class PaddleBackend implements Backend {
    static final String NAME = "paddle";
    static final String PLATFORM = "paddle";

    private static final String PROGRAM = ".pdmodel";
    private static final String FLUID = "__model__";
    private static final int HEAD = 4096;

    private final List<Backend> others;

    /** For {@link java.util.ServiceLoader}. */
    public PaddleBackend() {
        this(List.of());
    }

    /** @param others the backends to find ONNX Runtime in when the context does not list any, for tests */
    PaddleBackend(List<Backend> others) {
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
        return List.of("model.pdmodel", "inference.pdmodel", FLUID, "inference.json");
    }

    @Override
    public boolean recognises(Path file) {
        if (!file.getFileName().toString().endsWith(".json")) {
            return true;
        }
        try (InputStream in = Files.newInputStream(file)) {
            String start = new String(in.readNBytes(HEAD), StandardCharsets.ISO_8859_1);
            return start.startsWith("{") && start.contains("\"base_code\"") && start.contains("\"pir\"");
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
        byte[] bytes = Caffe2Backend.bytes(file, "put NAME" + PROGRAM + " and NAME.pdiparams there");
        if (file.getFileName().toString().endsWith(".json")) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "model '" + config.name() + "': '" + file.getFileName()
                            + "' is a program of PaddlePaddle 3, which this server does not run",
                    export(file) + ", or save it as a program of PaddlePaddle 2: set FLAGS_enable_pir_api=0");
        }
        byte[] onnx;
        try {
            PaddleProgram program = PaddleProgram.parse(bytes);
            if (program.operators().isEmpty()) {
                throw ServingException.invalidArgument("it has no operators, so it is not a PaddlePaddle program");
            }
            PaddleConverter converter = new PaddleConverter(program);
            onnx = converter.convert(weights(file, converter));
        } catch (ServingException e) {
            String own = e.remedy();
            if (e.getMessage().startsWith("model file")) {
                throw e;
            }
            throw Caffe2Backend.rejected(
                    file, e.getMessage(), PaddleOperatorContext.EXPORT.equals(own) || own == null ? export(file) : own);
        } catch (IllegalStateException | ArithmeticException e) {
            throw Caffe2Backend.rejected(file, "as an ONNX model it has 2 GiB or more", export(file));
        }
        return SingleInputModel.of(new OnnxDelegate(NAME, PLATFORM, others).run(onnx, source, config, context), config);
    }

    private static Map<String, ConstantTensor> weights(Path file, PaddleConverter converter) {
        List<PaddleProgram.Variable> weights = converter.weights();
        String name = file.getFileName().toString();
        Path combined = name.endsWith(PROGRAM)
                ? file.resolveSibling(name.substring(0, name.length() - PROGRAM.length()) + ".pdiparams")
                : file.resolveSibling("__params__");
        Path current = combined;
        try {
            if (weights.isEmpty()) {
                return Map.of();
            }
            if (name.endsWith(PROGRAM) || Files.exists(combined)) {
                return PaddleParameters.parse(
                        Caffe2Backend.bytes(combined, "put the weights beside the program"), weights);
            }
            Map<String, ConstantTensor> values = new HashMap<>();
            for (PaddleProgram.Variable weight : weights) {
                current = file.resolveSibling(weight.name()).normalize();
                if (!Objects.equals(
                        file.toAbsolutePath().normalize().getParent(),
                        current.toAbsolutePath().getParent())) {
                    throw ServingException.invalidArgument(
                            "the name of weight '" + weight.name() + "' is not a file name");
                }
                values.putAll(PaddleParameters.parse(
                        Caffe2Backend.bytes(current, "put __params__ or a file for each weight beside the program"),
                        List.of(weight)));
            }
            return values;
        } catch (ServingException e) {
            if (e.getMessage().startsWith("cannot read") || e.getMessage().startsWith("model file")) {
                throw e;
            }
            throw Caffe2Backend.rejected(
                    current, e.getMessage(), e.remedy() == null ? "save the model again" : e.remedy());
        }
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
        return directory.resolve("model" + PROGRAM);
    }

    private static String export(Path file) {
        String name = file.getFileName().toString();
        String command = "paddle2onnx --model_dir " + file.toAbsolutePath().getParent();
        if (!name.equals(FLUID)) {
            int dot = name.lastIndexOf('.');
            command += " --model_filename " + name + " --params_filename " + (dot < 0 ? name : name.substring(0, dot))
                    + ".pdiparams";
        }
        return "export it to ONNX (pip install paddlepaddle paddle2onnx; " + command
                + " --save_file model.onnx) and serve model.onnx";
    }
}
