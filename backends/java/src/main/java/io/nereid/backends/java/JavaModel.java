// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.Tensor;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * A model written in Java. Its jar is {@code model.jar} in the version directory. The class is named in the file
 * {@code META-INF/services/io.nereid.backends.java.JavaModel} of the jar, or in the configuration:
 * {@code parameters { key: "class" value: { string_value: "com.example.Doubler" } }}. The configuration is optional
 * otherwise.
 *
 * <pre>{@code
 * public final class Doubler implements JavaModel {
 *     public List<TensorSpec> inputs() { return List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1))); }
 *     public List<TensorSpec> outputs() { return List.of(new TensorSpec("y", DataType.FP32, Shape.of(-1))); }
 *     public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
 *         Tensor y = Tensor.allocate("y", DataType.FP32, inputs.get(0).shape());
 *         FloatBuffer from = inputs.get(0).buffer().asFloatBuffer(), to = y.buffer().asFloatBuffer();
 *         while (from.hasRemaining()) to.put(2 * from.get());
 *         return List.of(y);
 *     }
 * }
 * }</pre>
 *
 * <p>The class needs a public constructor without arguments. Its class loader contains the JDK, the jar, and of the
 * server only the packages {@code io.nereid.base}, {@code tensor}, {@code spi}, {@code backend} and this interface.
 *
 * <p>{@link #run} is called concurrently by as many threads as the configuration has instances, by default one. All
 * other methods are called by one thread at a time.
 */
public interface JavaModel {
    /** Returns the inputs; shapes do not have the batch dimension if {@link #maxBatchSize} is positive. */
    List<TensorSpec> inputs();

    /** Returns the outputs; shapes as for {@link #inputs}. */
    List<TensorSpec> outputs();

    /** Returns the maximum batch size, or 0 if tensors have no batch dimension. The configuration takes precedence. */
    default int maxBatchSize() {
        return 0;
    }

    /**
     * Loads the model, for instance reads its files.
     *
     * @param versionDirectory the directory with the version's files
     * @param parameters the parameters of the configuration
     * @throws Exception if the load fails; clients see its message
     */
    default void load(Path versionDirectory, Map<String, String> parameters) throws Exception {}

    /**
     * Runs the model on a batch.
     *
     * @param inputs in the order of {@link #inputs}, without absent optional ones; valid only during the call
     * @param outputs names of the requested outputs, at least one
     * @return the requested outputs in that order, each with its name; the caller closes them
     * @throws Exception a {@link io.nereid.base.ServingException} is returned to the client, any other as INTERNAL
     */
    List<Tensor> run(List<Tensor> inputs, List<String> outputs) throws Exception;

    /**
     * Releases the resources of the model. Also called after a failed {@link #load}. No run is in progress, and none
     * follows.
     *
     * @throws Exception written to the server's log
     */
    default void close() throws Exception {}
}
