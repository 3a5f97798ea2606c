// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.Shape;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Runs {@code .tflite} models with TensorFlow Lite, on CPUs. Thread-safe; TensorFlow Lite's library is loaded on first
 * use, under this object's lock.
 *
 * <p>The server finds this class through {@link java.util.ServiceLoader}. Used directly:
 *
 * <pre>{@code
 * Backend backend = new TfliteBackend();
 * if (backend.unavailableReason() == null) {
 *     BackendModel model = backend.load(location, config, context);
 * }
 * }</pre>
 */
public final class TfliteBackend implements Backend {
    static final String NAME = "tflite";
    static final String PLATFORM = "tensorflow_lite";

    private static final Logger LOG = System.getLogger(TfliteBackend.class.getName());
    private static final String FILE = "model.tflite";
    /**
     * XNNPACK reserves memory by the shapes that the file declares, which the operators correct afterwards: a damaged
     * shape can cost gigabytes. Tensors up to this size are never suspected.
     */
    private static final double MOST_ELEMENTS = 1 << 24;

    @GuardedBy("this") private @Nullable LiteRuntime runtime;

    @GuardedBy("this") private @Nullable String failure;

    /** Creates the backend. It loads native code only when a model is loaded or its availability is checked. */
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
        return Files.isRegularFile(file) && FlatBufferModelReader.recognises(file);
    }

    @Override
    public synchronized @Nullable String unavailableReason() {
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
        String reason = unavailableReason();
        LiteRuntime started = runtime;
        if (started == null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    String.valueOf(reason),
                    "TensorFlow Lite needs Linux with glibc 2.34 or newer on x86-64; 'nereid plugins install tflite'"
                            + " repairs a damaged installation");
        }
        return started;
    }

    @Override
    public Optional<Set<String>> settingNames() {
        return Optional.of(LiteSettings.names());
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        LiteSettings settings = LiteSettings.read(config.parameters(), context.settings());
        if (!config.operatorLibraries().isEmpty()) {
            throw ServingException.invalidArgument(
                    "model '" + config.name() + "' needs operator libraries, which the tflite backend does not load",
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
        FlatBufferModelReader.check(config.name(), file, content);
        LiteRuntime engine = started();
        LiteModelFile opened = LiteModelFile.open(engine, config.name(), file, content);
        boolean loaded = false;
        try {
            String obstacle = settings.xnnpack() ? obstacle(content) : null;
            if (obstacle != null) {
                LOG.log(Level.WARNING, "model ''{0}'' runs without XNNPACK: {1}", config.name(), obstacle);
            }
            boolean xnnpack = settings.xnnpack() && obstacle == null;
            LiteModel model = model(engine, opened, config, context, settings, xnnpack, file);
            loaded = true;
            return model;
        } finally {
            if (!loaded) {
                opened.close();
            }
        }
    }

    private static @Nullable String obstacle(byte[] content) {
        try {
            return XnnpackCheck.obstacle(content);
        } catch (IndexOutOfBoundsException | ArithmeticException e) {
            return "its quantization parameters are damaged";
        }
    }

    private static LiteModel model(
            LiteRuntime engine,
            LiteModelFile opened,
            ModelConfig config,
            BackendContext context,
            LiteSettings settings,
            boolean wanted,
            Path file) {
        List<String> keys;
        try (LiteInterpreter plain = runner(engine, opened, config.name(), "", file)) {
            keys = plain.keys();
        }
        List<SignatureBinding> all = new ArrayList<>();
        boolean resizable = config.maxBatchSize() > 0;
        boolean inflated = false;
        for (String key : keys.isEmpty() ? List.of("") : keys) {
            try (LiteInterpreter runner = runner(engine, opened, config.name(), key, file)) {
                all.add(new SignatureBinding(
                        key,
                        TensorBinding.checked(runner.ports(config.name(), true), settings.checkShapes()),
                        TensorBinding.checked(runner.ports(config.name(), false), settings.checkShapes())));
                // Allocation fails for unknown operators and for tensors whose shapes do not match.
                engine.reports().startCollecting();
                double declared = runner.largestTensor();
                boolean fits = runner.allocate();
                String messages = engine.reports().takeMessages();
                if (!fits) {
                    throw LiteModelFile.unusable(config.name(), file, messages);
                }
                inflated |= declared > MOST_ELEMENTS && declared > 16 * runner.largestTensor();
            }
            if (resizable) {
                // A new interpreter: after an allocation, some operators keep the sizes that they have prepared for.
                try (LiteInterpreter runner = runner(engine, opened, config.name(), key, file)) {
                    resizable = resizable(engine, runner, all.get(all.size() - 1));
                }
            }
        }
        SignatureBinding byDefault = all.stream()
                .filter(s -> s.key().equals(ModelMetadata.DEFAULT_SIGNATURE))
                .findFirst()
                .orElse(all.get(0));
        // A model that was converted for a batch size of 1 runs row by row.
        boolean single = config.maxBatchSize() > 0 && !resizable && all.stream().allMatch(SignatureBinding::single);
        ModelConfig complete = new ConfigCompletion(config, byDefault, all, resizable || single)
                .complete(
                        context.autoComplete(),
                        settings.defaultMaxBatchSize(),
                        Math.max(1, context.cores() / settings.threads()));
        if (wanted && inflated) {
            LOG.log(
                    Level.WARNING,
                    "model ''{0}'' runs without XNNPACK: the file declares tensors far larger than those computed",
                    config.name());
        }
        boolean xnnpack = wanted && !inflated && delegated(engine, opened, config.name(), byDefault);
        return new LiteModel(complete, engine, opened, settings, context, xnnpack, single, byDefault, all);
    }

    /**
     * Whether XNNPACK runs a part of the model. The checks before this one are made with the built-in kernels, whose
     * messages say what is wrong with a file.
     */
    private static boolean delegated(
            LiteRuntime engine, LiteModelFile opened, String model, SignatureBinding signature) {
        engine.reports().startCollecting();
        boolean fits = false;
        int count = 0;
        try (LiteInterpreter runner = LiteInterpreter.open(engine, opened, 1, signature.key(), true)) {
            if (runner != null && runner.allocate()) {
                fits = true;
                count = runner.delegated();
            }
        } finally {
            String messages = engine.reports().takeMessages();
            if (!fits) {
                LOG.log(
                        Level.WARNING,
                        "model ''{0}'' runs without XNNPACK, which cannot prepare it ({1})",
                        model,
                        messages.isEmpty() ? "it reports no reason" : messages);
            }
        }
        LOG.log(Level.DEBUG, "model ''{0}'': XNNPACK runs {1} operators", model, count);
        return count > 0;
    }

    private static LiteInterpreter runner(
            LiteRuntime engine, LiteModelFile opened, String model, String key, Path file) {
        engine.reports().startCollecting();
        LiteInterpreter runner = LiteInterpreter.open(engine, opened, 1, key, false);
        String messages = engine.reports().takeMessages();
        if (runner == null) {
            throw LiteModelFile.unusable(model, file, messages);
        }
        return runner;
    }

    /**
     * Whether a signature can be batched: it accepts a first dimension of 2 for all inputs and gives 2 for all outputs.
     */
    private static boolean resizable(LiteRuntime engine, LiteInterpreter runner, SignatureBinding signature) {
        engine.reports().startCollecting();
        try {
            for (int i = 0; i < signature.inputs().size(); i++) {
                Shape shape = LiteInterpreter.shape(runner.tensor(true, i));
                if (shape.rank() == 0 || !runner.resize(i, shape.withFirst(2), false)) {
                    return false;
                }
            }
            if (!runner.allocate()) {
                return false;
            }
            for (int i = 0; i < signature.outputs().size(); i++) {
                Shape shape = LiteInterpreter.shape(runner.tensor(false, i));
                if (shape.rank() == 0 || shape.dim(0) != 2) {
                    return false;
                }
            }
            return true;
        } finally {
            engine.reports().takeMessages();
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
