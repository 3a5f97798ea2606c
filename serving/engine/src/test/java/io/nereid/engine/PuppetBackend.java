// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.backend.ModelTraits;
import io.nereid.base.ServingException;
import io.nereid.spi.Signature;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * A backend for {@code model.puppet} files. Words in a file define its behaviour: {@code broken} fails to load,
 * {@code slow} waits for {@link #open} while loading, {@code stuck} while running, {@code failing} fails every run,
 * {@code sized} is made for its {@code max_batch_size}, {@code signatures} adds {@code plus_ten} and {@code classify}, {@code two} has two instances, {@code unwilling} is
 * never ready. Thread-safe.
 */
public final class PuppetBackend implements Backend {
    private static final List<TensorSpec> IN = List.of(new TensorSpec("IN0", DataType.FP32, Shape.of(-1)));
    private static final List<TensorSpec> OUT = List.of(new TensorSpec("OUT0", DataType.FP32, Shape.of(-1)));

    /** The runs, as {@code model/version signature[instance] rows}. */
    public final List<String> runs = new CopyOnWriteArrayList<>();

    final Map<String, AtomicInteger> loads = new ConcurrentHashMap<>();
    final Map<String, String> settings = new ConcurrentHashMap<>();
    public final AtomicInteger open = new AtomicInteger();
    private final Map<String, CountDownLatch> gates = new ConcurrentHashMap<>();

    /** Releases the runs and loads that wait at {@code <model>/<version>}. */
    public void open(String version) {
        gate(version).countDown();
    }

    private CountDownLatch gate(String version) {
        return gates.computeIfAbsent(version, v -> new CountDownLatch(1));
    }

    public int loads(String version) {
        AtomicInteger count = loads.get(version);
        return count == null ? 0 : count.get();
    }

    @Override
    public String name() {
        return "puppet";
    }

    @Override
    public List<String> platforms() {
        return List.of("puppet_show");
    }

    @Override
    public List<String> defaultFiles() {
        return List.of("model.puppet");
    }

    @Override
    public @Nullable String unavailableReason() {
        return null;
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        String version = source.id().model() + "/" + source.id().version();
        settings.putAll(context.settings());
        String words;
        try {
            words = Files.readString(source.versionDirectory().resolve("model.puppet"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        loads.computeIfAbsent(version, v -> new AtomicInteger()).incrementAndGet();
        if (words.contains("slow")) {
            await(version);
        }
        if (words.contains("broken")) {
            throw ServingException.invalidArgument("broken weights");
        }
        open.incrementAndGet();
        return new Puppet(version, words, completed(config, context, words.contains("two") ? 2 : 1));
    }

    private static ModelConfig completed(ModelConfig config, BackendContext context, int instances) {
        int rows = config.maxBatchSize() >= 0
                ? config.maxBatchSize()
                : Integer.parseInt(context.settings().getOrDefault("default-max-batch-size", "4"));
        return config.completed(
                "puppet_show",
                "puppet",
                rows,
                IN,
                OUT,
                config.batching() == null && rows > 1 && config.maxBatchSize() < 0
                        ? DynamicBatching.EAGER
                        : config.batching(),
                instances);
    }

    private void await(String version) {
        try {
            if (!gate(version).await(10, TimeUnit.SECONDS)) {
                throw new IllegalStateException("the test did not open " + version);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Adds its version's number, or more for other signatures, to each value. */
    private final class Puppet implements BackendModel {
        private final String version;
        private final String words;
        private final ModelConfig config;
        private final Map<String, AtomicInteger> instances = new ConcurrentHashMap<>();

        Puppet(String version, String words, ModelConfig config) {
            this.version = version;
            this.words = words;
            this.config = config;
        }

        @Override
        public ModelConfig config() {
            return config;
        }

        @Override
        public ModelTraits traits() {
            return ModelTraits.DEFAULT;
        }

        @Override
        public boolean acceptsMaxBatchSize(int rows) {
            return !words.contains("sized");
        }

        @Override
        public boolean ready() {
            return !words.contains("unwilling");
        }

        @Override
        public Map<String, Signature> signatures() {
            if (!words.contains("signatures")) {
                return Map.of();
            }
            return Map.of(
                    "serving_default",
                    new Signature("own/method", IN, OUT, Map.of("IN0", "in:0")),
                    "plus_ten",
                    new Signature(
                            Signature.PREDICT,
                            List.of(new TensorSpec("X", DataType.FP32, Shape.of(2), false, false, null, true)),
                            List.of(new TensorSpec("Y", DataType.FP32, Shape.of(2), false, false, null, true)),
                            Map.of()),
                    "classify",
                    new Signature(
                            Signature.CLASSIFY,
                            List.of(new TensorSpec("inputs", DataType.BYTES, Shape.SCALAR)),
                            List.of(new TensorSpec("scores", DataType.BYTES, Shape.SCALAR)),
                            Map.of()));
        }

        @Override
        public String signature(Map<String, Object> parameters) {
            Object plus = parameters.get("plus");
            if (plus == null) {
                return "";
            }
            if (!plus.equals(10L)) {
                throw ServingException.invalidArgument("plus what?");
            }
            return "plus_ten";
        }

        @Override
        public ModelInstance newInstance() {
            return newInstance("");
        }

        @Override
        public ModelInstance newInstance(String signature) {
            int instance = instances
                    .computeIfAbsent(signature, s -> new AtomicInteger())
                    .getAndIncrement();
            return new ModelInstance() {
                @Override
                public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
                    Tensor in = inputs.get(0);
                    runs.add(version + " " + signature + "[" + instance + "] "
                            + (in.shape().rank() == 0 ? 0 : in.shape().dim(0)));
                    if (words.contains("stuck")) {
                        await(version);
                    }
                    if (words.contains("failing")) {
                        throw ServingException.invalidArgument("a run of " + version + " failed");
                    }
                    float add = Float.parseFloat(version.substring(version.indexOf('/') + 1))
                            + (signature.isEmpty() ? 0 : 10);
                    List<Tensor> answer = new ArrayList<>();
                    for (String name : outputs) {
                        if (in.dataType() == DataType.BYTES) {
                            answer.add(in.retainAs(name, in.shape()));
                            continue;
                        }
                        Tensor out = Tensor.allocate(name, DataType.FP32, in.shape());
                        for (int i = 0; i < in.byteLength(); i += 4) {
                            out.buffer().putFloat(i, in.buffer().getFloat(i) + add);
                        }
                        answer.add(out);
                    }
                    return answer;
                }

                @Override
                public void cancel() {}

                @Override
                public void close() {}
            };
        }

        @Override
        public long memoryBytes() {
            return 1000;
        }

        @Override
        public void close() {
            open.decrementAndGet();
        }
    }
}
