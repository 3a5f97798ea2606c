// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelTraits;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A loaded TensorFlow Lite model. All instances share the model's bytes, weights included; each has an interpreter with
 * tensor memory of its own. Thread-safe.
 */
final class LiteModel implements BackendModel {
    /** Inputs are copied into the interpreter's memory. */
    private static final ModelTraits TRAITS =
            ModelTraits.builder().cancellable(true).build();

    private final ModelConfig config;
    private final LiteRuntime runtime;
    private final LiteModelFile file;
    private final int threads;
    private final boolean single;
    private final SignatureBinding byDefault;
    private final Map<String, SignatureBinding> ports = new LinkedHashMap<>();
    private final Map<String, Signature> signatures;

    LiteModel(
            ModelConfig config,
            LiteRuntime runtime,
            LiteModelFile file,
            int threads,
            boolean single,
            SignatureBinding byDefault,
            List<SignatureBinding> all) {
        this.config = config;
        this.runtime = runtime;
        this.file = file;
        this.threads = threads;
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
        return new LiteModelInstance(this, signature, runtime.reports());
    }

    /** Whether the model accepts only one row per run, so that instances run a batch row by row. */
    boolean single() {
        return single;
    }

    /** Creates an interpreter, owned by the caller. */
    LiteInterpreter runner(SignatureBinding signature) {
        LiteInterpreter runner = LiteInterpreter.open(runtime, file, threads, signature.key());
        if (runner == null) {
            throw ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED, "cannot create an interpreter for model '" + config.name() + "'");
        }
        return runner;
    }

    @Override
    public long memoryBytes() {
        return file.size();
    }

    @Override
    public void close() {
        file.close();
    }
}
