// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelMetadata;
import io.nereid.tensor.Shape;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Runs TensorFlow Lite's models on TensorFlow Lite, on processors. Thread-safe; the engine is started on first use, under
 * a lock.
 */
public final class TfliteBackend implements Backend {
    static final String NAME = "tflite";
    static final String PLATFORM = "tensorflow_lite";

    private static final String FILE = "model.tflite";

    private @Nullable LiteRuntime runtime;
    private @Nullable String failure;

    /** The backend; nothing native is loaded yet. */
    public TfliteBackend() {}

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
        return List.of(FILE);
    }

    @Override
    public boolean recognises(Path file) {
        return Files.isRegularFile(file) && FlatModel.recognises(file);
    }

    @Override
    public synchronized @Nullable String unavailable() {
        if (runtime == null && failure == null) {
            try {
                runtime = LiteRuntime.start();
            } catch (LinkageError | RuntimeException e) {
                Throwable cause = e;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                failure = "TensorFlow Lite cannot be loaded on this machine (" + System.getProperty("os.name") + ", "
                        + System.getProperty("os.arch") + "): " + cause.getMessage();
            }
        }
        return failure;
    }

    private synchronized LiteRuntime started() {
        String reason = unavailable();
        LiteRuntime started = runtime;
        if (started == null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    String.valueOf(reason),
                    "the engine needs Linux with glibc 2.34 or newer on x86-64; 'nereid plugins install tflite' mends a"
                            + " damaged installation");
        }
        return started;
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        LiteSettings settings = LiteSettings.read(config.parameters(), context.settings());
        if (!config.operatorLibraries().isEmpty()) {
            throw ServingException.invalidArgument(
                    "model '" + config.name()
                            + "' wants libraries of operators, which the tflite backend does not load",
                    "remove model_operations, or convert the model with standard operators");
        }
        Path file = find(source, config);
        byte[] content;
        try {
            if (Files.size(file) > Integer.MAX_VALUE - 64) {
                throw ServingException.invalidArgument("'" + file + "' of model '" + config.name() + "' has "
                        + Files.size(file) + " bytes (expected: < 2 GiB, which is the format's limit)");
            }
            content = Files.readAllBytes(file);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    "cannot read '" + file + "' of model '" + config.name() + "': "
                            + e.getClass().getSimpleName(),
                    "check that the server may read it",
                    e);
        }
        FlatModel.check(config.name(), file, content);
        LiteRuntime engine = started();
        LiteModelFile opened = LiteModelFile.open(engine, config.name(), file, content);
        boolean loaded = false;
        try {
            LiteModel model = model(engine, opened, config, context, settings, file);
            loaded = true;
            return model;
        } finally {
            if (!loaded) {
                opened.close();
            }
        }
    }

    private static LiteModel model(
            LiteRuntime engine,
            LiteModelFile opened,
            ModelConfig config,
            BackendContext context,
            LiteSettings settings,
            Path file) {
        List<String> keys;
        try (Runner plain = runner(engine, opened, config.name(), "", file)) {
            keys = plain.keys();
        }
        List<SignaturePorts> all = new ArrayList<>();
        boolean resizable = config.maxBatchSize() > 0;
        for (String key : keys.isEmpty() ? List.of("") : keys) {
            try (Runner runner = runner(engine, opened, config.name(), key, file)) {
                all.add(new SignaturePorts(key, runner.ports(config.name(), true), runner.ports(config.name(), false)));
                // Tells of operators, and of tensors that do not fit together.
                engine.reports().listen();
                boolean fits = runner.allocate();
                String said = engine.reports().heard();
                if (!fits) {
                    throw unusable(config.name(), file, said);
                }
            }
            if (resizable) {
                // Another one: what has been laid out for one size may be fixed to it.
                try (Runner runner = runner(engine, opened, config.name(), key, file)) {
                    resizable = resizable(engine, runner, all.get(all.size() - 1));
                }
            }
        }
        SignaturePorts byDefault = all.stream()
                .filter(s -> s.key().equals(ModelMetadata.DEFAULT_SIGNATURE))
                .findFirst()
                .orElse(all.get(0));
        // What was converted for one row alone runs row by row.
        boolean single = config.maxBatchSize() > 0 && !resizable && all.stream().allMatch(SignaturePorts::single);
        ModelConfig complete = new Completion(config, byDefault, all, resizable || single)
                .complete(
                        context.autoComplete(),
                        settings.defaultMaxBatchSize(),
                        Math.max(1, context.cores() / settings.threads()));
        return new LiteModel(complete, engine, opened, settings.threads(), single, byDefault, all);
    }

    private static Runner runner(LiteRuntime engine, LiteModelFile opened, String model, String key, Path file) {
        engine.reports().listen();
        Runner runner = Runner.open(engine, opened, 1, key);
        String said = engine.reports().heard();
        if (runner == null) {
            throw unusable(model, file, said);
        }
        return runner;
    }

    private static ServingException unusable(String model, Path file, String said) {
        return ServingException.invalidArgument(
                "unable to load model '" + model + "' from '" + file + "': "
                        + (said.isEmpty() ? "the engine does not say why" : said),
                said.contains("version") || said.contains("op for")
                        ? "convert the model with TensorFlow 2.20 or older"
                        : "convert the model again");
    }

    /** Whether a signature's first dimensions can all be 2 at once. */
    private static boolean resizable(LiteRuntime engine, Runner runner, SignaturePorts signature) {
        engine.reports().listen();
        try {
            for (int i = 0; i < signature.inputs().size(); i++) {
                Shape shape = Runner.shape(runner.tensor(true, i));
                if (shape.rank() == 0 || !runner.resize(i, shape.withFirst(2))) {
                    return false;
                }
            }
            if (!runner.allocate()) {
                return false;
            }
            for (int i = 0; i < signature.outputs().size(); i++) {
                Shape shape = Runner.shape(runner.tensor(false, i));
                if (shape.rank() == 0 || shape.dim(0) != 2) {
                    return false;
                }
            }
            return true;
        } finally {
            engine.reports().heard();
        }
    }

    private static Path find(ModelLocation source, ModelConfig config) {
        Path directory = source.versionDirectory().normalize();
        String name = config.modelFile().isEmpty() ? FILE : config.modelFile();
        Path place = directory.resolve(name).normalize();
        if (!place.startsWith(directory)) {
            throw ServingException.invalidArgument(
                    "model file '" + name + "' lies outside the version's directory",
                    "name a file inside " + directory);
        }
        if (!Files.isRegularFile(place)) {
            throw ServingException.invalidArgument(
                    "unable to find '" + place + "' for model '" + config.name() + "'",
                    "put " + FILE + " there, or name the file in default_model_filename");
        }
        return place;
    }
}
