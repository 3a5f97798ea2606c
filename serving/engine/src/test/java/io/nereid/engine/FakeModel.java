// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelRequest;
import io.nereid.backend.ModelTraits;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.Tensor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiFunction;
import java.util.function.Consumer;

/** A backend model whose run is a function of the test. Thread-safe. */
public final class FakeModel implements BackendModel {
    public final AtomicInteger runs = new AtomicInteger();
    public final AtomicInteger cancels = new AtomicInteger();
    private final ModelConfig config;
    private final ModelTraits traits;
    private final BiFunction<List<Tensor>, List<String>, List<Tensor>> function;
    private final Consumer<List<ModelRequest>> requests;
    public final AtomicInteger invocations = new AtomicInteger();
    public final AtomicInteger closedInvocations = new AtomicInteger();
    public final CountDownLatch entered = new CountDownLatch(1);
    public final CountDownLatch cancelled = new CountDownLatch(1);
    public volatile boolean closed;

    public FakeModel(
            ModelConfig config, ModelTraits traits, BiFunction<List<Tensor>, List<String>, List<Tensor>> function) {
        this.config = config;
        this.traits = traits;
        this.function = function;
        this.requests = r -> {
            throw new AssertionError("takes tensors");
        };
    }

    /** A model that takes single requests. */
    public FakeModel(ModelConfig config, Consumer<List<ModelRequest>> requests) {
        this.config = config;
        this.traits = ModelTraits.builder().takesRequests(true).build();
        this.function = (in, out) -> {
            throw new AssertionError("takes requests");
        };
        this.requests = requests;
    }

    public static ModelConfig config(int maxBatch, Duration delay, List<TensorSpec> inputs, List<TensorSpec> outputs) {
        return ModelConfig.unspecified("m")
                .completed(
                        "fake",
                        "fake",
                        maxBatch,
                        inputs,
                        outputs,
                        maxBatch > 1 ? new DynamicBatching(List.of(), delay, false) : null,
                        1);
    }

    /** Every output named OUT… is the input of the same position, shared. */
    public static List<Tensor> identity(List<Tensor> inputs, List<String> outputs) {
        List<Tensor> answer = new ArrayList<>();
        for (int i = 0; i < outputs.size(); i++) {
            answer.add(inputs.get(i).retainAs(outputs.get(i), inputs.get(i).shape()));
        }
        return answer;
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public boolean acceptsMaxBatchSize(int rows) {
        return true;
    }

    @Override
    public ModelTraits traits() {
        return traits;
    }

    @Override
    public ModelInstance newInstance() {
        invocations.incrementAndGet();
        return new ModelInstance() {
            @Override
            public void execute(List<ModelRequest> batch) {
                runs.incrementAndGet();
                entered.countDown();
                requests.accept(batch);
            }

            @Override
            public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
                runs.incrementAndGet();
                entered.countDown();
                return function.apply(inputs, outputs);
            }

            @Override
            public void cancel() {
                cancels.incrementAndGet();
                cancelled.countDown();
            }

            @Override
            public void close() {
                closedInvocations.incrementAndGet();
            }
        };
    }

    @Override
    public long memoryBytes() {
        return 0;
    }

    @Override
    public void close() {
        closed = true;
    }
}
