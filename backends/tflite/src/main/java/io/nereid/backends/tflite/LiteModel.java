// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelTraits;
import io.nereid.backend.WideRuns;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * A loaded TensorFlow Lite model. All instances share the model's bytes, weights included; each has an interpreter with
 * tensor memory of its own, and perhaps there is one more for runs of the default signature on an idle machine ({@link WideRuns}).
 * Thread-safe.
 */
final class LiteModel implements BackendModel {
    private static final Logger LOG = System.getLogger(LiteModel.class.getName());

    /** Inputs are copied into the interpreter's memory. */
    private static final ModelTraits TRAITS =
            ModelTraits.builder().cancellable(true).build();

    private final ModelConfig config;
    private final LiteRuntime runtime;
    private final LiteModelFile file;
    private final LiteSettings settings;
    private final boolean xnnpack;
    private final boolean single;
    private final SignatureBinding byDefault;
    private final Map<String, SignatureBinding> ports = new LinkedHashMap<>();
    private final Map<String, Signature> signatures;
    private final AtomicInteger instances = new AtomicInteger();
    private final @Nullable WideRuns<WideInterpreter> wide;
    private final AtomicBoolean fallbackLogged = new AtomicBoolean();

    /**
     * Constructor.
     *
     * @param xnnpack whether XNNPACK runs a part of the model
     */
    LiteModel(
            ModelConfig config,
            LiteRuntime runtime,
            LiteModelFile file,
            LiteSettings settings,
            BackendContext context,
            boolean xnnpack,
            boolean single,
            SignatureBinding byDefault,
            List<SignatureBinding> all) {
        this.config = config;
        this.runtime = runtime;
        this.file = file;
        this.settings = settings;
        this.xnnpack = xnnpack;
        this.single = single;
        this.byDefault = byDefault;
        Map<String, Signature> described = new LinkedHashMap<>();
        for (SignatureBinding each : all) {
            if (!each.key().isEmpty()) {
                ports.put(each.key(), each);
                boolean own = each == byDefault;
                described.put(
                        each.key(),
                        new Signature(
                                Signature.PREDICT,
                                own ? config.inputs() : specs(each.inputs()),
                                own ? config.outputs() : specs(each.outputs()),
                                Map.of()));
            }
        }
        signatures = Map.copyOf(described);
        // Twice the size of the file: XNNPACK's copy of the weights, and tensors.
        wide = settings.threadsGiven()
                ? null
                : WideRuns.of(context, config.name(), LiteSettings.THREADS, 2 * file.size(), this::openWide);
    }

    /** Opens the interpreter of wide runs, held once for the caller; null when the model has been closed. */
    @Nullable WideInterpreter openWide(int threads) {
        if (!file.hold()) {
            return null;
        }
        boolean opened = false;
        try {
            WideInterpreter second =
                    new WideInterpreter(new LiteModelInstance(this, byDefault, runtime, threads, file::close));
            opened = true;
            return second;
        } finally {
            if (!opened) {
                file.close();
            }
        }
    }

    /** Whether runs of the default signature may become wide. */
    boolean choosesWidth() {
        return wide != null;
    }

    /** Chooses the interpreter of each run of a signature; null when all its runs use that of their instance. */
    @Nullable WideRuns<WideInterpreter> wide(SignatureBinding signature) {
        return signature == byDefault ? wide : null;
    }

    private List<TensorSpec> specs(List<TensorBinding> list) {
        return list.stream().map(p -> p.spec(config.batched())).toList();
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public ModelTraits traits() {
        return TRAITS;
    }

    @Override
    public Map<String, Signature> signatures() {
        return signatures;
    }

    /** {@inheritDoc} Interpreters take the rows of each run, or run row by row. */
    @Override
    public boolean acceptsMaxBatchSize(int rows) {
        return true;
    }

    @Override
    public ModelInstance newInstance() {
        return instance(byDefault);
    }

    @Override
    public ModelInstance newInstance(String signature) {
        SignatureBinding wanted = signature.equals(ModelMetadata.DEFAULT_SIGNATURE) ? byDefault : ports.get(signature);
        if (wanted == null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "Serving signature key \"" + signature + "\" not found.",
                    "this model has " + String.join(", ", ports.keySet()));
        }
        return instance(wanted);
    }

    private ModelInstance instance(SignatureBinding signature) {
        ModelInstance made =
                new LiteModelInstance(this, signature, runtime, settings.threads(), instances::decrementAndGet);
        instances.incrementAndGet();
        return made;
    }

    /** Whether the model accepts only one row per run, so that instances run a batch row by row. */
    boolean single() {
        return single;
    }

    /** Creates the interpreter for a signature, owned by the caller: with XNNPACK where the model has it. */
    LiteInterpreter runner(SignatureBinding signature, int threads) {
        return runner(signature, threads, xnnpack);
    }

    /**
     * Creates an interpreter with the built-in kernels alone, owned by the caller. It is made in microseconds, because
     * no weights are copied.
     */
    LiteInterpreter builtInRunner(SignatureBinding signature, int threads) {
        return runner(signature, threads, false);
    }

    private LiteInterpreter runner(SignatureBinding signature, int threads, boolean delegated) {
        LiteInterpreter runner = LiteInterpreter.open(runtime, file, threads, signature.key(), delegated);
        if (runner == null) {
            throw ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED, "cannot create an interpreter for model '" + config.name() + "'");
        }
        return runner;
    }

    /** Logs once that the built-in kernels answered a request that XNNPACK could not. */
    void logFallback(String messages) {
        if (fallbackLogged.compareAndSet(false, true)) {
            LOG.log(
                    Level.WARNING,
                    "model ''{0}'': XNNPACK could not run a request ({1}); the built-in kernels answered it, and will"
                            + " answer others like it, more slowly",
                    config.name(),
                    messages.isEmpty() ? "it reports no reason" : messages);
        }
    }

    /**
     * The file's bytes, and once more for each instance where XNNPACK has a copy of the weights. Instances that do not
     * exist yet count, because they are created with the first requests. So does the interpreter of wide runs, once it is there.
     */
    @Override
    public long memoryBytes() {
        if (!xnnpack) {
            return file.size();
        }
        int copies = Math.max(config.instances(), instances.get()) + (wide != null && wide.isOpen() ? 1 : 0);
        return file.size() * (1L + copies);
    }

    @Override
    public void close() {
        if (wide != null) {
            wide.close();
        }
        file.close();
    }
}
