// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pmml;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelTraits;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Tensor;
import io.nereid.tensor.TensorScope;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.pmml4s.PmmlException;

/**
 * A loaded model, which is also its only instance. Thread-safe: immutable, except for state that the library guards.
 */
final class PmmlModel implements BackendModel, ModelInstance {
    private static final ModelTraits TRAITS =
            ModelTraits.builder().takesTables(true).build();

    private final ModelConfig config;
    private final PmmlDocument document;
    private final RowConversion cells;
    private final List<Answer> answers;

    /**
     * An output, resolved for runs. Immutable.
     *
     * @param name the name
     * @param type the data type
     * @param place the index among the document's outputs
     */
    record Answer(String name, DataType type, int place) {}

    /** @param matrix the input of rows of all fields, or null when there is none */
    PmmlModel(ModelConfig config, PmmlDocument document, @Nullable String matrix, List<Answer> answers) {
        this.config = config;
        this.document = document;
        this.cells = new RowConversion(document.fields(), matrix);
        this.answers = List.copyOf(answers);
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public ModelTraits traits() {
        return TRAITS;
    }

    /** {@inheritDoc} Nothing is made for a number of rows. */
    @Override
    public boolean acceptsMaxBatchSize(int rows) {
        return true;
    }

    /** Returns this: a run has no state of its own, so all callers can share one instance. */
    @Override
    public ModelInstance newInstance() {
        return this;
    }

    /** Returns 0: all memory is on the heap. */
    @Override
    public long memoryBytes() {
        return 0;
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        @Nullable Object[][] rows = cells.read(inputs);
        Object[][] results = new Object[rows.length][];
        for (int row = 0; row < rows.length; row++) {
            results[row] = evaluate(rows[row], row);
        }
        try (TensorScope tensors = new TensorScope()) {
            for (String output : outputs) {
                RowConversion.write(answer(output), results, tensors);
            }
            return tensors.release();
        }
    }

    private Object[] evaluate(@Nullable Object[] row, int number) {
        try {
            return document.model().predict((Object) row);
        } catch (Exception | StackOverflowError e) {
            // The library throws checked exceptions that it does not declare, as it is written in Scala.
            if (e instanceof PmmlException) {
                throw ServingException.invalidArgument(
                        "model '" + config.name() + "' rejects row " + number + ": " + PmmlDocument.reason(e));
            }
            throw ServingException.internal("model '" + config.name() + "' failed in row " + number + ": " + e, e);
        }
    }

    private Answer answer(String name) {
        for (Answer answer : answers) {
            if (answer.name().equals(name)) {
                return answer;
            }
        }
        throw ServingException.invalidArgument("model '" + config.name() + "' has no output '" + name + "'");
    }

    @Override
    public void cancel() {}

    @Override
    public void close() {}
}
