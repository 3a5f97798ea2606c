// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.request;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Converts tensors that have only a batch dimension. A configuration must declare them with a dimension of 1, and the
 * Open Inference Protocol shows that shape. Clients that name a signature, as TensorFlow Serving's do, see the model's
 * own shape: {@code [n]} instead of {@code [n,1]}. Immutable.
 */
public final class ScalarShapes {
    private final Set<String> inputs = new HashSet<>();
    private final Set<String> outputs = new HashSet<>();

    private ScalarShapes(ModelConfig config) {
        collect(config.inputs(), inputs);
        collect(config.outputs(), outputs);
    }

    private static void collect(List<TensorSpec> specs, Set<String> names) {
        for (TensorSpec s : specs) {
            Shape reshape = s.reshape();
            if (reshape != null && reshape.rank() == 0 && s.shape().rank() == 1) {
                names.add(s.name());
            }
        }
    }

    /** Returns the conversion for a model; null when it has no such tensors. */
    public static @Nullable ScalarShapes of(ModelConfig config) {
        if (!config.batched()) {
            return null;
        }
        ScalarShapes found = new ScalarShapes(config);
        return found.inputs.isEmpty() && found.outputs.isEmpty() ? null : found;
    }

    /** Returns a signature with the model's own shapes. */
    public Signature describe(Signature signature) {
        return new Signature(
                signature.method(),
                describe(signature.inputs(), inputs),
                describe(signature.outputs(), outputs),
                signature.tensors());
    }

    private static List<TensorSpec> describe(List<TensorSpec> specs, Set<String> names) {
        return specs.stream()
                .map(s -> names.contains(s.name())
                        ? new TensorSpec(s.name(), s.dataType(), Shape.of(-1), s.optional())
                        : s)
                .toList();
    }

    /**
     * Returns the request with {@code [n]} inputs reshaped to {@code [n,1]}. The result replaces {@code request} and
     * owns its inputs.
     */
    public InferenceRequest toModel(InferenceRequest request) {
        List<Tensor> given = request.inputs();
        boolean any = false;
        for (int i = 0; i < given.size(); i++) {
            any |= flat(given.get(i));
        }
        if (!any) {
            return request;
        }
        List<Tensor> fed = new ArrayList<>(given.size());
        for (Tensor t : given) {
            if (flat(t)) {
                fed.add(t.retainAs(t.name(), Shape.of(t.shape().dim(0), 1)));
                t.close();
            } else {
                fed.add(t);
            }
        }
        return request.with(fed, request.outputs());
    }

    private boolean flat(Tensor t) {
        return t.shape().rank() == 1 && inputs.contains(t.name());
    }

    /** Returns a sink that reshapes {@code [n,1]} outputs to {@code [n]}. */
    public ResponseSink toClient(ResponseSink sink) {
        return outputs.isEmpty() ? sink : new Flattened(sink);
    }

    private final class Flattened implements ResponseSink {
        private final ResponseSink sink;

        Flattened(ResponseSink sink) {
            this.sink = sink;
        }

        @Override
        public void next(InferenceResponse response, boolean last) {
            List<Tensor> seen = new ArrayList<>(response.outputs().size());
            for (Tensor t : response.outputs()) {
                if (t.shape().rank() == 2 && t.shape().dim(1) == 1 && outputs.contains(t.name())) {
                    seen.add(t.retainAs(t.name(), Shape.of(t.shape().dim(0))));
                    t.close();
                } else {
                    seen.add(t);
                }
            }
            sink.next(new InferenceResponse(response.servable(), response.id(), seen, response.parameters()), last);
        }

        @Override
        public void fail(ServingException e) {
            sink.fail(e);
        }
    }
}
