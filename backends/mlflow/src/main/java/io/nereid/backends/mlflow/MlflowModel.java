// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.mlflow;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ForwardingModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelRequest;
import io.nereid.backend.ModelTraits;
import io.nereid.base.ServingException;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Adapts a model of another backend to MLflow's signature. Thread-safe, as the model inside is. */
final class MlflowModel extends ForwardingModel {
    /** The tree backends' output of the most probable class, which is the prediction for MLflow's clients. */
    static final String LABEL = "label";

    static final String PREDICT = "predict";

    private final List<InputMapping> ports;
    private final boolean same;
    private final boolean labels;
    private final ModelTraits traits;

    MlflowModel(BackendModel inside, ModelConfig config, List<InputMapping> ports, boolean labels) {
        super(inside, config);
        this.ports = List.copyOf(ports);
        this.same = ports.stream()
                .allMatch(p -> p.columns().isEmpty() && p.type() == p.inside().dataType());
        this.labels = labels;
        ModelTraits wrapped = super.traits();
        this.traits = same
                ? wrapped
                : wrapped.toBuilder().inline(false).takesTables(true).build();
    }

    @Override
    public ModelTraits traits() {
        return traits;
    }

    @Override
    public Map<String, Signature> signatures() {
        return same ? super.signatures() : Map.of();
    }

    @Override
    public String signature(Map<String, Object> parameters) {
        String name = super.signature(parameters);
        if (!same && !name.isEmpty()) {
            throw ServingException.invalidArgument(
                    "model '" + config().name() + "' takes columns, but its parameters select signature '" + name
                            + "', which takes a matrix",
                    "set the parameter inputs: matrix in its configuration");
        }
        return name;
    }

    @Override
    public ModelInstance newInstance() {
        ModelInstance invocation = super.newInstance();
        return same && !labels ? invocation : new Adapted(invocation);
    }

    /** Converts inputs to those of the model inside. Confined as the instance that it wraps. */
    private final class Adapted implements ModelInstance {
        private final ModelInstance invocation;

        Adapted(ModelInstance invocation) {
            this.invocation = invocation;
        }

        @Override
        public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
            return run(inputs, outputs, 0);
        }

        @Override
        public List<Tensor> run(List<Tensor> inputs, List<String> outputs, int idleThreads) {
            List<Tensor> fed = same ? List.of() : feed(inputs);
            try {
                return invocation
                        .run(same ? inputs : fed, labels ? insideNames(outputs) : outputs, idleThreads)
                        .stream()
                        .map(t -> labels && t.name().equals(LABEL) ? renamed(t) : t)
                        .toList();
            } finally {
                Tensor.closeAll(fed);
            }
        }

        @Override
        public void execute(List<ModelRequest> requests) {
            invocation.execute(requests);
        }

        @Override
        public void cancel() {
            invocation.cancel();
        }

        @Override
        public void close() {
            invocation.close();
        }
    }

    private static List<String> insideNames(List<String> outputs) {
        return outputs.stream().map(o -> o.equals(PREDICT) ? LABEL : o).toList();
    }

    private static Tensor renamed(Tensor tensor) {
        Tensor renamed = tensor.retainAs(PREDICT, tensor.shape());
        tensor.close();
        return renamed;
    }

    private List<Tensor> feed(List<Tensor> inputs) {
        List<Tensor> fed = new ArrayList<>(ports.size());
        boolean done = false;
        try {
            long rows = -1;
            for (InputMapping port : ports) {
                if (port.columns().isEmpty()) {
                    Tensor given = Tensor.find(inputs, port.inside().name());
                    if (given != null) {
                        fed.add(TensorConversion.to(port.inside().dataType(), given, given.name(), given.shape()));
                    }
                    continue;
                }
                rows = rows < 0 ? rows(inputs) : rows;
                fed.add(columns(port, inputs, rows));
            }
            done = true;
            return fed;
        } finally {
            if (!done) {
                Tensor.closeAll(fed);
            }
        }
    }

    /** @throws ServingException INVALID_ARGUMENT for columns of different lengths */
    private static long rows(List<Tensor> inputs) {
        long rows = -1;
        for (Tensor input : inputs) {
            long count = input.shape().elementCount();
            if (rows >= 0 && count != rows) {
                throw ServingException.invalidArgument(
                        "column '" + input.name() + "' has " + count + " values (expected: " + rows + ", as '"
                                + inputs.get(0).name() + "')");
            }
            rows = count;
        }
        return rows;
    }

    private static Tensor columns(InputMapping port, List<Tensor> inputs, long rows) {
        List<String> names = port.columns();
        Shape spec = port.inside().modelShape();
        int rank = spec.rank() + (port.batched() ? 1 : 0);
        Shape shape = rank <= 1 ? Shape.of(rows) : Shape.of(rows, names.size());
        if (names.size() == 1) {
            Tensor only = Tensor.find(inputs, names.get(0));
            if (only == null) {
                throw TensorConversion.absent(names.get(0));
            }
            return TensorConversion.to(
                    port.inside().dataType(), only, port.inside().name(), shape);
        }
        List<@Nullable Tensor> columns = new ArrayList<>(names.size());
        for (String name : names) {
            columns.add(Tensor.find(inputs, name));
        }
        return TensorConversion.sideBySide(
                columns, names, port.inside().dataType(), port.inside().name(), shape);
    }
}
