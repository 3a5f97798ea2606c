// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelTraits;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelMetadata.Signature;
import io.nereid.spi.TensorSpec;
import io.nereid.tensor.Shape;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A loaded graph: one session, with its variables, that all invocations share. Thread-safe. Results do not need the
 * session: the engine counts who uses their memory.
 */
final class TfModel implements BackendModel {
    /** Whatever is not on a 64-byte boundary, or small, is copied on the way in; the engine would do the same. */
    private static final ModelTraits TRAITS = new ModelTraits(1, false, false);

    private final ModelConfig config;
    private final Graph graph;
    private final Map<String, SignaturePorts> ports = new LinkedHashMap<>();
    private final SignaturePorts byDefault;
    private final Map<String, Signature> signatures;
    private final Defaults defaults;
    private final long memoryBytes;

    TfModel(ModelConfig config, Graph graph, List<SignaturePorts> all, SignaturePorts byDefault, long memoryBytes) {
        this.config = config;
        this.graph = graph;
        this.byDefault = byDefault;
        this.memoryBytes = memoryBytes;
        Map<String, Signature> described = new LinkedHashMap<>();
        for (SignaturePorts each : all) {
            ports.put(each.name(), each);
            if (!each.outputs().isEmpty()) {
                described.put(each.name(), described(each));
            }
        }
        // Under this name the default one is meant, whichever that was chosen to be.
        described.computeIfPresent(ModelMetadata.DEFAULT_SIGNATURE, (name, other) -> described(byDefault));
        signatures = Map.copyOf(described);
        defaults = new Defaults(config.name(), all);
    }

    private Signature described(SignaturePorts each) {
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

    private List<TensorSpec> specs(List<Port> list) {
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
    public ModelInstance newInvocation() {
        return new TfInvocation(this, byDefault);
    }

    @Override
    public ModelInstance newInvocation(String signature) {
        SignaturePorts wanted = signature.equals(ModelMetadata.DEFAULT_SIGNATURE) ? byDefault : ports.get(signature);
        if (wanted == null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "Serving signature key \"" + signature + "\" not found.",
                    "this model has " + String.join(", ", ports.keySet()));
        }
        return new TfInvocation(this, wanted);
    }

    @Override
    public long memoryBytes() {
        return memoryBytes;
    }

    Graph graph() {
        return graph;
    }

    Defaults defaults() {
        return defaults;
    }

    /** The shape that the engine is given for one that a client gave: of a single value, clients may make a vector. */
    static Shape fed(Port port, Shape given) {
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
