// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.tfserving;

import io.nereid.base.ServingException;
import io.nereid.repository.config.ConfigReadContext;
import io.nereid.repository.schema.TypedMessage;
import io.nereid.repository.schema.TypedMessage.Value;
import io.nereid.repository.tfserving.TfServingTextFiles.Read;
import io.nereid.spi.config.BatchSizePolicy;
import io.nereid.spi.config.DynamicBatching;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;

/**
 * TensorFlow Serving's batching parameters: {@code --batching_parameters_file}, or {@code batching_params.pbtxt} of one
 * version, in protobuf's text format.
 *
 * <pre>{@code
 * max_batch_size { value: 128 }
 * batch_timeout_micros { value: 1000 }
 * max_enqueued_batches { value: 100 }
 * num_batch_threads { value: 8 }
 * allowed_batch_sizes: [ 32, 64, 128 ]
 * pad_variable_length_inputs: true
 * }</pre>
 *
 * Immutable.
 *
 * @param maxBatchSize maximum rows of a batch; with splitting, maximum rows of a request
 * @param batchTimeoutMicros maximum time that a batch waits to be filled, from its first request on; microseconds
 * @param maxEnqueuedBatches maximum number of waiting batches
 * @param numBatchThreads maximum number of concurrent batches over all models; 0 for the number of processors
 * @param threadPoolName a label of metrics
 * @param allowedBatchSizes the sizes to which batches are padded, ascending; empty for any size
 * @param padVariableLengthInputs whether inputs of different shapes are padded to the largest shape
 * @param enableLargeBatchSplitting whether requests that are too large for one execution are split
 * @param maxExecutionBatchSize maximum rows of an execution; equal to {@code maxBatchSize} without splitting
 */
public record BatchingParameters(
        int maxBatchSize,
        long batchTimeoutMicros,
        int maxEnqueuedBatches,
        int numBatchThreads,
        String threadPoolName,
        List<Integer> allowedBatchSizes,
        boolean padVariableLengthInputs,
        boolean enableLargeBatchSplitting,
        int maxExecutionBatchSize) {
    /** The default values, as of an empty file. */
    public static final BatchingParameters DEFAULT =
            new BatchingParameters(1000, 0, 10, 0, "batch_threads", List.of(), false, false, 1000);

    /** Validates the values; throws INVALID_ARGUMENT. */
    public BatchingParameters {
        allowedBatchSizes = List.copyOf(allowedBatchSizes);
        atLeast("max_batch_size", maxBatchSize, 1);
        atLeast("batch_timeout_micros", batchTimeoutMicros, 0);
        atLeast("max_enqueued_batches", maxEnqueuedBatches, 1);
        atLeast("num_batch_threads", numBatchThreads, 0);
        atLeast("max_execution_batch_size", maxExecutionBatchSize, 1);
        if (maxExecutionBatchSize > maxBatchSize) {
            throw ServingException.invalidArgument(
                    "max_execution_batch_size is " + maxExecutionBatchSize
                            + " (expected: at most max_batch_size, which is " + maxBatchSize + ")",
                    "it is the maximum of one execution of a split request");
        }
        if (!enableLargeBatchSplitting && maxExecutionBatchSize != maxBatchSize) {
            throw ServingException.invalidArgument(
                    "max_execution_batch_size is " + maxExecutionBatchSize + ", but requests are not split",
                    "write enable_large_batch_splitting { value: true }, or leave it out");
        }
        int before = 0;
        for (int size : allowedBatchSizes) {
            if (size <= before) {
                throw ServingException.invalidArgument(
                        "allowed_batch_sizes entries must be monotonically increasing",
                        size + " follows " + before + "; sizes begin at 1");
            }
            before = size;
        }
        if (before > 0 && before != maxBatchSize && !(enableLargeBatchSplitting && before == maxExecutionBatchSize)) {
            throw ServingException.invalidArgument(
                    "Last entry in allowed_batch_sizes must match max_batch_size; last entry was " + before
                            + "; expected " + maxBatchSize,
                    "add " + maxBatchSize + ", or set max_batch_size { value: " + before + " }");
        }
    }

    private static void atLeast(String field, long value, long least) {
        if (value < least) {
            throw ServingException.invalidArgument(
                    field + " is " + value + " (expected: at least " + least + ")",
                    "write " + field + " { value: … }, or leave it out for the default");
        }
    }

    /**
     * Reads a text.
     *
     * @param where the origin of the text, for messages
     * @throws ServingException INVALID_ARGUMENT with every error and its position
     */
    public static BatchingParameters parse(String text, String where) {
        Read read = TfServingTextFiles.read(TfServingTextFiles.BATCHING, text, where);
        TypedMessage p = read.root();
        List<Integer> sizes = new ArrayList<>();
        for (Value v : p.all("allowed_batch_sizes")) {
            sizes.add(cut(v.number()));
        }
        read.check();
        int maxBatchSize = cut(TfServingTextFiles.wrapperValue(p, "max_batch_size", DEFAULT.maxBatchSize));
        boolean splitting = p.message("enable_large_batch_splitting").flag("value");
        String name = p.message("thread_pool_name").text("value");
        try {
            return new BatchingParameters(
                    maxBatchSize,
                    TfServingTextFiles.wrapperValue(p, "batch_timeout_micros", DEFAULT.batchTimeoutMicros),
                    cut(TfServingTextFiles.wrapperValue(p, "max_enqueued_batches", DEFAULT.maxEnqueuedBatches)),
                    cut(TfServingTextFiles.wrapperValue(p, "num_batch_threads", DEFAULT.numBatchThreads)),
                    name.isEmpty() ? DEFAULT.threadPoolName : name,
                    sizes,
                    p.flag("pad_variable_length_inputs"),
                    splitting,
                    cut(TfServingTextFiles.wrapperValue(p, "max_execution_batch_size", maxBatchSize)));
        } catch (ServingException e) {
            throw ServingException.of(e.code(), where + ": " + e.getMessage(), e.remedy());
        }
    }

    /** As {@link #parse}, of a file, which must be readable. */
    public static BatchingParameters read(Path file) {
        return parse(TfServingTextFiles.text(file), file.toString());
    }

    private static int cut(long value) {
        return (int) Math.max(Integer.MIN_VALUE, Math.min(Integer.MAX_VALUE, value));
    }

    /** The padding and splitting settings for executions of up to {@link #maxExecutionBatchSize} rows. */
    public BatchSizePolicy batchSizePolicy() {
        return batchSizePolicy(maxExecutionBatchSize);
    }

    /**
     * As {@link #batchSizePolicy()}, for a model with a smaller maximum, which limits the allowed sizes.
     *
     * @param maxRows the model's {@code max_batch_size}, at least 1
     */
    public BatchSizePolicy batchSizePolicy(int maxRows) {
        int largest = Math.min(maxRows, maxExecutionBatchSize);
        TreeSet<Integer> sizes = new TreeSet<>();
        for (int size : allowedBatchSizes) {
            sizes.add(Math.min(size, largest));
        }
        return new BatchSizePolicy(
                List.copyOf(sizes),
                padVariableLengthInputs,
                enableLargeBatchSplitting ? maxBatchSize : 0,
                maxEnqueuedBatches);
    }

    /** The batcher's settings for executions of up to {@link #maxExecutionBatchSize} rows. */
    public DynamicBatching batching() {
        return batching(maxExecutionBatchSize);
    }

    /** As {@link #batching()}, for a model with a smaller maximum. */
    public DynamicBatching batching(int maxRows) {
        return new DynamicBatching(List.of(), ConfigReadContext.micros(batchTimeoutMicros), false)
                .withBatchSizePolicy(batchSizePolicy(maxRows));
    }
}
