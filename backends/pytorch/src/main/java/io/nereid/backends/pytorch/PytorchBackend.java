// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import ai.djl.pytorch.engine.PtSymbolBlock;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backend.WideRuns;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Runs TorchScript archives with libtorch, on CPUs. Thread-safe; libtorch is started on first use, under this object's
 * lock.
 *
 * <p>All instances of a version share one module and run in parallel. A run with one thread is made by the thread that calls it; on
 * an idle machine, or where the configuration says so, a run has more ({@link IntraOpThreads}).
 *
 * <p>The server finds this class through {@link java.util.ServiceLoader}. Used directly:
 *
 * <pre>{@code
 * Backend backend = new PytorchBackend();
 * if (backend.unavailableReason() == null) {
 *     BackendModel model = backend.load(location, config, context);
 * }
 * }</pre>
 */
public final class PytorchBackend implements Backend {
    static final String NAME = "pytorch";
    static final String PLATFORM = "pytorch_libtorch";

    private static final List<String> FILES = List.of("model.pt", "model.pth", "model.mar");

    /** The default files, and one that is not served: its error says what it is. */
    private static final List<String> SOUGHT = List.of("model.pt", "model.pth", "model.mar", "model.pt2");

    @GuardedBy("this") private @Nullable PtRuntime runtime;

    @GuardedBy("this") private @Nullable String failure;

    /** Creates the backend. It loads native code only when a model is loaded or its availability is checked. */
    public PytorchBackend() {}

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public List<String> platforms() {
        return List.of(PLATFORM);
    }

    /** The last format is not supported; it is listed so that {@link #load} reports that by name. */
    @Override
    public List<String> defaultFiles() {
        return FILES;
    }

    @Override
    public boolean recognises(Path file) {
        return Files.isRegularFile(file) && TorchArchive.recognises(file);
    }

    @Override
    public Optional<Set<String>> settingNames() {
        return Optional.of(PtSettings.names());
    }

    @Override
    public @Nullable String unavailableReason() {
        return unavailable(PtSettings.read(Map.of(), Map.of()), Path.of(System.getProperty("java.io.tmpdir", "/tmp")));
    }

    private synchronized @Nullable String unavailable(PtSettings settings, Path scratch) {
        if (runtime == null && failure == null) {
            try {
                runtime = PtRuntime.start(settings, scratch);
            } catch (LinkageError | RuntimeException | IOException e) {
                Throwable cause = e;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                failure = "PyTorch cannot be loaded on this machine (" + System.getProperty("os.name") + ", "
                        + System.getProperty("os.arch") + "): " + cause.getMessage();
            }
        }
        return failure;
    }

    private synchronized PtRuntime started(PtSettings settings, Path scratch) {
        String reason = unavailable(settings, scratch);
        PtRuntime started = runtime;
        if (started == null) {
            throw PtRuntime.missing(reason);
        }
        return started;
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        PtSettings settings = PtSettings.read(config.parameters(), context.settings());
        if (!config.operatorLibraries().isEmpty()) {
            throw ServingException.invalidArgument(
                    "model '" + config.name() + "' needs operator libraries, which the pytorch backend does not load",
                    "remove model_operations, or export the model with standard operators");
        }
        Path file = find(source, config);
        try {
            TorchScriptSignature script = TorchArchive.read(config.name(), file);
            ConfigCompletion completion = new ConfigCompletion(config, script, context.autoComplete());
            PtRuntime engine = started(settings, context.scratch());
            IntraOpThreads threads = new IntraOpThreads(Math.max(1, settings.intraThreads()));
            ModelConfig complete = completion.complete(Math.max(1, context.cores() / threads.count()));
            long bytes = Files.size(file);
            PtSymbolBlock block = new IntraOpThreads(1).run(() -> engine.load(config.name(), file));
            // All runs share the module, so that wide ones take no memory.
            WideRuns<IntraOpThreads> wide = settings.intraThreads() > 0
                    ? null
                    : WideRuns.of(context, config.name(), PtSettings.INTRA_OF_MODEL, 0, IntraOpThreads::new);
            return new PtModel(
                    complete, completion.wiring(complete), engine, block, settings.optimize(), bytes, threads, wide);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    "cannot read '" + file + "' of model '" + config.name() + "': "
                            + e.getClass().getSimpleName(),
                    "check that the server may read it",
                    e);
        }
    }

    private static Path find(ModelLocation source, ModelConfig config) {
        Path directory = source.versionDirectory().normalize();
        List<String> names = config.modelFile().isEmpty() ? SOUGHT : List.of(config.modelFile());
        for (String name : names) {
            Path place = directory.resolve(name).normalize();
            if (!place.startsWith(directory)) {
                throw ServingException.invalidArgument(
                        "model file '" + name + "' lies outside the version's directory",
                        "name a file inside " + directory);
            }
            if (Files.isRegularFile(place)) {
                return place;
            }
        }
        throw ServingException.invalidArgument(
                "unable to find '" + directory.resolve(names.get(0)) + "' for model '" + config.name() + "'",
                "put model.pt there, or name the file in default_model_filename");
    }
}
