// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.backend.BackendModel;
import io.nereid.backend.Invocation;
import io.nereid.backend.IoTraits;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelConfig;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;

/** A loaded estimator that all its invocations share. Thread-safe: nothing of it changes. */
final class SklearnModel implements BackendModel, Invocation {
    /** So many rows of a quick estimator take tens of microseconds. */
    private static final int FEW_ROWS = 64;

    private final ModelConfig config;
    private final Estimator estimator;
    private final Reading reading;
    private final List<Writing> writings;
    private final boolean[] texts;

    SklearnModel(ModelConfig config, Estimator estimator, Reading reading, List<Writing> writings, boolean[] texts) {
        this.config = config;
        this.estimator = estimator;
        this.reading = reading;
        this.writings = List.copyOf(writings);
        this.texts = texts;
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public IoTraits traits() {
        return new IoTraits(
                1, false, estimator.quick() && config.batched() && config.maxBatchSize() <= FEW_ROWS, false, true);
    }

    /** A run has no state of its own, so that one will do for all. */
    @Override
    public Invocation newInvocation() {
        return this;
    }

    @Override
    public long memoryBytes() {
        return 0;
    }

    /**
     * One row through all methods, so that arrays of a file that do not fit each other are found out now.
     *
     * @throws RuntimeException that is no ServingException when they do not
     */
    void rehearse() {
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
        for (Method method : estimator.methods()) {
            try {
                estimator.checked(method, new Table(1, columns, new double[columns], cells));
            } catch (ServingException e) {
                // It refuses this row, as it may.
            }
        }
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        Table table = reading.table(inputs);
        List<Tensor> results = new ArrayList<>(outputs.size());
        try {
            for (String output : outputs) {
                results.add(answer(output, table));
            }
        } catch (ServingException e) {
            Tensor.closeAll(results);
            throw e;
        } catch (RuntimeException | StackOverflowError e) {
            Tensor.closeAll(results);
            throw ServingException.internal("model '" + config.name() + "' failed: " + e, e);
        }
        return results;
    }

    private Tensor answer(String output, Table table) {
        for (Writing writing : writings) {
            if (writing.name().equals(output)) {
                Table answer = table.rows() == 0
                        ? Table.of(0, Math.max(1, estimator.width(writing.method())))
                        : estimator.checked(writing.method(), table);
                return writing.tensor(answer);
            }
        }
        throw ServingException.invalidArgument("model '" + config.name() + "' has no output '" + output + "'");
    }

    @Override
    public void cancel() {}

    @Override
    public void close() {}
}
