// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelTraits;
import io.nereid.backends.huggingface.task.TaskAnswers;
import io.nereid.backends.huggingface.task.VectorAnswers;
import io.nereid.spi.config.ModelConfig;
import java.util.List;

/** A loaded encoder, with its tokenizer and what makes the answers. Thread-safe. */
final class TextModel implements BackendModel {
    private final ModelConfig config;
    private final GraphRunner runner;
    private final TextTokenizer tokenizer;
    private final TaskAnswers answers;
    private final List<String> inputs;
    private final String output;
    private final boolean masks;
    private final ModelTraits traits;

    /**
     * @param config the complete configuration
     * @param inputs the inputs of the graph
     * @param output the output of the graph
     * @param masks whether the graph computes the numbers of masked tokens only
     */
    TextModel(
            ModelConfig config,
            GraphRunner runner,
            TextTokenizer tokenizer,
            TaskAnswers answers,
            List<String> inputs,
            String output,
            boolean masks) {
        this.config = config;
        this.runner = runner;
        this.tokenizer = tokenizer;
        this.answers = answers;
        this.inputs = inputs;
        this.output = output;
        this.masks = masks;
        this.traits = ModelTraits.builder()
                .takesRequests(true)
                .takesTables(true)
                .cancellable(runner.cancellable())
                .build();
    }

    GraphRunner runner() {
        return runner;
    }

    TextTokenizer tokenizer() {
        return tokenizer;
    }

    TaskAnswers answers() {
        return answers;
    }

    /** The inputs of the graph. */
    List<String> inputs() {
        return inputs;
    }

    /** The output of the graph. */
    String output() {
        return output;
    }

    /** Whether the graph computes the numbers of masked tokens only. */
    boolean masks() {
        return masks;
    }

    /** Whether the answers depend on the tokens alone, so that requests may have tokens in place of texts. */
    boolean takesTokens() {
        return answers instanceof VectorAnswers;
    }

    /** Whether a pair of texts may have several windows. */
    boolean windows() {
        return tokenizer.windows();
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public ModelTraits traits() {
        return traits;
    }

    /** {@inheritDoc} Nothing is made for a number of rows. */
    @Override
    public boolean acceptsMaxBatchSize(int rows) {
        return true;
    }

    @Override
    public ModelInstance newInstance() {
        return new TextModelInstance(this, runner.newInstance());
    }

    @Override
    public long memoryBytes() {
        return runner.memoryBytes() + tokenizer.bytes();
    }

    @Override
    public void close() {
        try {
            runner.close();
        } finally {
            tokenizer.close();
        }
    }
}
