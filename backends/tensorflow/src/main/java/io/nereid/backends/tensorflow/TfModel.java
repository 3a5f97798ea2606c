// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.Shape;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A loaded TensorFlow model: one session, with its variables, that all instances share. Thread-safe. Results may
 * outlive the session, because TensorFlow counts the references to their memory itself.
 */
final class TfModel implements BackendModel {
    /** Inputs need no alignment: small or unaligned ones are copied, as TensorFlow itself would do. */
    private final ModelConfig config;

    private final TfGraph graph;
    private final Map<String, SignatureBinding> ports = new LinkedHashMap<>();
    private final SignatureBinding byDefault;
    private final Map<String, Signature> signatures;
    private final DefaultInputs defaults;
    private final long memoryBytes;

    TfModel(
            ModelConfig config,
            TfGraph graph,
            List<SignatureBinding> all,
            SignatureBinding byDefault,
            long memoryBytes) {
        this.config = config;
        this.graph = graph;
        this.byDefault = byDefault;
        this.memoryBytes = memoryBytes;
        Map<String, Signature> described = new LinkedHashMap<>();
        for (SignatureBinding each : all) {
            ports.put(each.name(), each);
            if (!each.outputs().isEmpty()) {
                described.put(each.name(), described(each));
            }
        }
        // Clients that ask for serving_default get the model's default signature, whatever its own name.
        described.computeIfPresent(ModelMetadata.DEFAULT_SIGNATURE, (name, other) -> described(byDefault));
        signatures = Map.copyOf(described);
        defaults = new DefaultInputs(config.name(), all);
    }

    private Signature described(SignatureBinding each) {
        Map<String, String> tensors = new LinkedHashMap<>();
        each.inputs().forEach(p -> tensors.put(p.name(), p.tensor()));
        each.outputs().forEach(p -> tensors.put(p.name(), p.tensor()));
        boolean own = each == byDefault;
        return new Signature(
                each.method().isEmpty() ? Signature.PREDICT : each.method(),
                own ? config.inputs() : specs(each.inputs()),
                own ? config.outputs() : specs(each.outputs()),
                Map.copyOf(tensors));
    }

    private List<TensorSpec> specs(List<TensorBinding> list) {
        return list.stream().map(p -> p.spec(config.batched())).toList();
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public Map<String, Signature> signatures() {
        return signatures;
    }

    /** {@inheritDoc} Nothing is made for a number of rows. */
    @Override
    public boolean acceptsMaxBatchSize(int rows) {
        return true;
    }

    @Override
    public ModelInstance newInstance() {
        return new TfModelInstance(this, byDefault);
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
        return new TfModelInstance(this, wanted);
    }

    @Override
    public long memoryBytes() {
        return memoryBytes;
    }

    TfGraph graph() {
        return graph;
    }

    DefaultInputs defaults() {
        return defaults;
    }

    /**
     * The shape that TensorFlow receives for a client's shape: clients may send a scalar as a vector of one element.
     */
    static Shape fed(TensorBinding port, Shape given) {
        Shape shape = port.shape();
        return shape != null && shape.rank() == 0 && port.binding() && given.rank() == 1 && given.dim(0) == 1
                ? Shape.SCALAR
                : given;
    }

    @Override
    public void close() {
        defaults.close();
        graph.close();
    }
}
