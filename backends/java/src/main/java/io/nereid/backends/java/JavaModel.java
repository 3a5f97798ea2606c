// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.spi.TensorSpec;
import io.nereid.tensor.Tensor;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * A model written in Java. Its jar lies as {@code model.jar} in a version's directory and names the class in
 * {@code META-INF/services/io.nereid.backends.java.JavaModel}, or the configuration names it:
 * {@code parameters { key: "class" value: { string_value: "com.example.Doubler" } }}. A configuration is otherwise not
 * needed.
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
 * <p>The class needs a public constructor without arguments. It sees the JDK, its own jar, and of the server only the
 * packages {@code io.nereid.base}, {@code tensor}, {@code spi}, {@code backend} and this interface. {@link #run} is called
 * by as many threads at once as the configuration has instances, one unless it says otherwise; everything else by one.
 */
public interface JavaModel {
    /** What it takes; shapes without the batch dimension when {@link #maxBatchSize} is positive. */
    List<TensorSpec> inputs();

    /** What it gives; shapes likewise. */
    List<TensorSpec> outputs();

    /** The most rows in one run, or 0 when tensors have no batch dimension. A configuration overrides it. */
    default int maxBatchSize() {
        return 0;
    }

    /**
     * Gets ready to run.
     *
     * @param versionDirectory where the version's files lie
     * @param parameters of the configuration
     * @throws Exception what makes loading fail; its message is shown
     */
    default void load(Path versionDirectory, Map<String, String> parameters) throws Exception {}

    /**
     * Computes.
     *
     * @param inputs in the order of {@link #inputs}, optional ones left out; lent for the length of the call
     * @param outputs names of the wanted outputs, at least one
     * @return the wanted outputs in that order, each with its name; the caller closes them
     * @throws Exception a {@link io.nereid.base.ServingException} reaches the client as it is, anything else as INTERNAL
     */
    List<Tensor> run(List<Tensor> inputs, List<String> outputs) throws Exception;

    /**
     * Frees what the model holds; also follows a failed {@link #load}. No run is under way, and none follows.
     *
     * @throws Exception what goes to the server's log
     */
    default void close() throws Exception {}
}
