// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelTraits;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.base.ServingException;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.Tensor;
import io.nereid.tensor.TensorScope;
import java.util.List;
import java.util.Map;

/** A loaded estimator; its instances share it, because runs have no state. Thread-safe: immutable. */
final class SklearnModel implements BackendModel {
    /** Batches of a quick estimator up to this size take tens of microseconds, and may run on the caller's thread. */
    private static final int FEW_ROWS = 64;

    private final ModelConfig config;
    private final Estimator estimator;
    private final InputReader reading;
    private final List<OutputWriter> writings;
    private final MethodSignatures others;
    private final boolean[] texts;
    private final ModelTraits traits;
    private final Runnable release;

    SklearnModel(
            ModelConfig config,
            Estimator estimator,
            InputReader reading,
            List<OutputWriter> writings,
            MethodSignatures others,
            boolean[] texts,
            Runnable release) {
        this.config = config;
        this.estimator = estimator;
        this.reading = reading;
        this.writings = List.copyOf(writings);
        this.others = others;
        this.texts = texts;
        this.release = release;
        this.traits = ModelTraits.builder()
                .inline(config.batched() && tiny(config.maxBatchSize()))
                .takesTables(true)
                .build();
    }

    private boolean tiny(int rows) {
        return estimator.quick() && rows <= FEW_ROWS;
    }

    /** {@inheritDoc} Unless runs become too long for the thread of the request, or short enough. */
    @Override
    public boolean acceptsMaxBatchSize(int rows) {
        return tiny(rows) == traits.inline();
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public ModelTraits traits() {
        return traits;
    }

    /** A run has no state of its own, so all instances are this one; closing an instance frees nothing. */
    @Override
    public ModelInstance newInstance() {
        return (inputs, outputs) -> run(inputs, outputs, writings);
    }

    /** One signature for each method that is not an output of the configuration, and one with all methods. */
    @Override
    public Map<String, Signature> signatures() {
        return others.signatures();
    }

    /** Selects the method by the request parameter {@code method}, or MLflow's name for it, {@code predict_fn}. */
    @Override
    public String signature(Map<String, Object> parameters) {
        return others.byParameters(parameters, config);
    }

    @Override
    public String signatureWith(List<String> outputs) {
        return others.with(outputs);
    }

    @Override
    public ModelInstance newInstance(String signature) {
        List<OutputWriter> wanted = others.writers(signature);
        return (inputs, outputs) -> run(inputs, outputs, wanted);
    }

    @Override
    public long memoryBytes() {
        return 0;
    }

    /**
     * Runs one row of zeros through all methods, so that arrays of inconsistent sizes are detected at load time, not by
     * the first request.
     *
     * @throws RuntimeException other than ServingException when the arrays do not fit each other
     */
    void validate() {
        int columns = Math.max(estimator.features(), 0);
        if (estimator.features() < 0) {
            return;
        }
        String[] cells = null;
        for (int c = 0; c < columns && c < texts.length; c++) {
            if (texts[c]) {
                cells = cells == null ? new String[columns] : cells;
                cells[c] = "a";
            }
        }
        for (PredictMethod method : estimator.methods()) {
            try {
                estimator.checked(method, new DataTable(1, columns, new double[columns], cells));
            } catch (ServingException e) {
                // Estimators may reject this row, for example as an unknown category.
            }
        }
    }

    private List<Tensor> run(List<Tensor> inputs, List<String> outputs, List<OutputWriter> writers) {
        DataTable table = reading.table(inputs);
        try (TensorScope results = new TensorScope()) {
            for (String output : outputs) {
                results.add(answer(output, table, writers));
            }
            return results.release();
        } catch (ServingException e) {
            throw e;
        } catch (RuntimeException | StackOverflowError e) {
            throw ServingException.internal("model '" + config.name() + "' failed: " + e, e);
        }
    }

    private Tensor answer(String output, DataTable table, List<OutputWriter> writers) {
        for (OutputWriter writing : writers) {
            if (writing.name().equals(output)) {
                DataTable answer = table.rows() == 0
                        ? DataTable.of(0, Math.max(1, estimator.width(writing.method())))
                        : estimator.checked(writing.method(), table);
                return writing.tensor(answer);
            }
        }
        throw ServingException.invalidArgument("model '" + config.name() + "' has no output '" + output + "'");
    }

    @Override
    public void close() {
        release.run();
    }
}
