// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.observe.RequestTrace;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceRequest.SequenceFlags;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.Signature;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.Tensor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Spliterators;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.jspecify.annotations.Nullable;

/**
 * A model to ask, with the settings of the requests. Immutable and thread-safe: methods that begin with {@code with} return a
 * copy. It stays valid while versions of the model come and go; each request takes the version that is served then.
 *
 * <p>All methods that ask throw a {@link ServingException}, or complete with one: INVALID_ARGUMENT for inputs that are not
 * the model's, NOT_FOUND and UNAVAILABLE for a model that is not loaded, RESOURCE_EXHAUSTED for a full queue,
 * DEADLINE_EXCEEDED after {@link #withTimeout}, CANCELLED for an interrupted thread, and what the model itself reports.
 *
 * <pre>{@code
 * Model iris = nereid.model("iris").withTimeout(Duration.ofSeconds(1));
 * float[][] p = iris.predict(new float[][] {{5.1f, 3.5f, 1.4f, 0.2f}}).floatRows("probabilities");
 * List<Species> all = iris.predict(flowers, Species.class);        // records in, records out
 * CompletableFuture<Prediction> later = iris.predictAsync(Inputs.only(rows));
 * }</pre>
 */
public final class Model {
    private final InferenceEngine engine;
    private final Clock clock;
    private final @Nullable PredictionTraces traces;
    private final ModelRef ref;
    private final Settings settings;

    private record Settings(
            long timeoutNanos,
            long priority,
            @Nullable SequenceFlags sequence,
            String signature,
            List<RequestedOutput> outputs,
            Map<String, Object> parameters,
            String id) {
        static final Settings NONE = new Settings(0, 0, null, "", List.of(), Map.of(), "");
    }

    Model(InferenceEngine engine, Clock clock, @Nullable PredictionTraces traces, ModelRef ref) {
        this(engine, clock, traces, ref, Settings.NONE);
    }

    private Model(
            InferenceEngine engine, Clock clock, @Nullable PredictionTraces traces, ModelRef ref, Settings settings) {
        this.engine = engine;
        this.clock = clock;
        this.traces = traces;
        this.ref = ref;
        this.settings = settings;
    }

    private Model with(ModelRef other) {
        return new Model(engine, clock, traces, other, settings);
    }

    private Model with(Settings other) {
        return new Model(engine, clock, traces, ref, other);
    }

    /** Asks one version instead of the highest that is served. */
    public Model withVersion(long version) {
        return with(ModelRef.exact(ref.model(), version));
    }

    /** Asks the version that a label stands for. */
    public Model withLabel(String label) {
        return with(new ModelRef(ref.model(), ModelRef.ANY, label));
    }

    /**
     * Limits the time from the call to the response.
     *
     * @throws ServingException INVALID_ARGUMENT for a time that is not positive
     */
    public Model withTimeout(Duration limit) {
        if (limit.isNegative() || limit.isZero()) {
            throw ServingException.invalidArgument("a time limit of " + limit + " (expected: above zero)");
        }
        Settings s = settings;
        return with(new Settings(limit.toNanos(), s.priority, s.sequence, s.signature, s.outputs, s.parameters, s.id));
    }

    /** Sets the priority in the model's queue: 1 is served first, 0 is the model's default. */
    public Model withPriority(long priority) {
        Settings s = settings;
        return with(new Settings(s.timeoutNanos, priority, s.sequence, s.signature, s.outputs, s.parameters, s.id));
    }

    /**
     * Makes the next request one of a sequence.
     *
     * @param id the correlation id
     * @param start whether it is the first of the sequence
     * @param end whether it is the last one
     */
    public Model withSequence(long id, boolean start, boolean end) {
        Settings s = settings;
        return with(new Settings(
                s.timeoutNanos,
                s.priority,
                new SequenceFlags(id, start, end),
                s.signature,
                s.outputs,
                s.parameters,
                s.id));
    }

    /** Asks for another signature of the model than its default one. */
    public Model withSignature(String name) {
        Settings s = settings;
        return with(new Settings(s.timeoutNanos, s.priority, s.sequence, name, s.outputs, s.parameters, s.id));
    }

    /** Asks for these outputs only, in this order. */
    public Model withOutputs(String... names) {
        List<RequestedOutput> outputs = new ArrayList<>();
        for (String name : names) {
            outputs.add(new RequestedOutput(name, 0));
        }
        Settings s = settings;
        return with(new Settings(
                s.timeoutNanos, s.priority, s.sequence, s.signature, List.copyOf(outputs), s.parameters, s.id));
    }

    /**
     * Sets a parameter of the requests.
     *
     * @param value a Boolean, Integer, Long, Double or String
     * @throws ServingException INVALID_ARGUMENT for another type
     */
    public Model withParameter(String name, Object value) {
        Object kept = value instanceof Integer i ? (Object) i.longValue() : value;
        if (!(kept instanceof Boolean || kept instanceof Long || kept instanceof Double || kept instanceof String)) {
            throw ServingException.invalidArgument("parameter '" + name + "' is a "
                    + value.getClass().getSimpleName() + " (expected: a Boolean, Integer, Long, Double or String)");
        }
        Settings s = settings;
        Map<String, Object> more = new LinkedHashMap<>(s.parameters);
        more.put(name, kept);
        return with(
                new Settings(s.timeoutNanos, s.priority, s.sequence, s.signature, s.outputs, Map.copyOf(more), s.id));
    }

    /** Sets the id of the requests, which appears in logs and traces. */
    public Model withId(String id) {
        Settings s = settings;
        return with(new Settings(s.timeoutNanos, s.priority, s.sequence, s.signature, s.outputs, s.parameters, id));
    }

    /** The model's name. */
    public String name() {
        return ref.model();
    }

    /** The inputs, outputs and signatures of the version that is served now. */
    public ModelMetadata metadata() {
        return engine.metadata(ref);
    }

    // ---- one response ----

    /** Predicts for rows of a model with one input. Blocks. */
    public Prediction predict(float[][] rows) {
        return predict(Inputs.only(rows));
    }

    /** Predicts for rows of a model with one input. Blocks. */
    public Prediction predict(double[][] rows) {
        return predict(Inputs.only(rows));
    }

    /** Predicts for inputs by their names; see {@link Inputs} for what a value may be. Blocks. */
    public Prediction predict(Map<String, ?> inputs) {
        return predict(Inputs.map(inputs));
    }

    /** Predicts for a row that is a record; see {@link Inputs#rows} and {@link Prediction#as}. Blocks. */
    public <R extends Record> R predict(Record row, Class<R> result) {
        List<R> all = predict(List.of(row), result);
        if (all.size() != 1) {
            throw ServingException.invalidArgument("model '" + name() + "' answered one row with " + all.size());
        }
        return all.get(0);
    }

    /** Predicts for rows that are records; see {@link Inputs#rows} and {@link Prediction#as}. Blocks. */
    public <R extends Record> List<R> predict(List<? extends Record> rows, Class<R> result) {
        return predict(Inputs.rows(rows)).as(result);
    }

    /** Predicts, and waits for the response. */
    public Prediction predict(Inputs inputs) {
        return Prediction.of(infer(tensors(inputs)));
    }

    /**
     * Predicts on tensors, without a copy of the outputs.
     *
     * @param inputs the call owns them from here on, in every case
     * @return the caller closes it
     */
    public InferenceResponse infer(List<Tensor> inputs) {
        RequestTrace trace = trace();
        PredictionSinks.Waiting sink = new PredictionSinks.Waiting(name(), trace);
        long now = clock.nanos();
        long deadline = deadline(now);
        InferenceCall call = engine.infer(request(inputs, now, deadline, trace), sink);
        return sink.await(call, clock, deadline);
    }

    /**
     * Predicts without waiting. The future completes on the thread that ran the model: use the methods that end in
     * {@code Async} for work that takes long. Cancelling it cancels the request.
     *
     * @throws ServingException INVALID_ARGUMENT for inputs that are not the model's; all other errors complete the future
     */
    public CompletableFuture<Prediction> predictAsync(Inputs inputs) {
        List<Tensor> tensors = tensors(inputs);
        RequestTrace trace = trace();
        PredictionSinks.Future future = new PredictionSinks.Future(name(), trace);
        long now = clock.nanos();
        future.call(engine.infer(request(tensors, now, deadline(now), trace), future));
        if (settings.timeoutNanos > 0) {
            var unused = future.orTimeout(settings.timeoutNanos, TimeUnit.NANOSECONDS);
        }
        return future;
    }

    // ---- streams ----

    /**
     * Passes each response of a decoupled model to a consumer, in order, on the thread that ran the model. The future
     * completes after the last one. Cancelling it, and an exception of the consumer, cancel the request.
     *
     * @throws ServingException as {@link #predictAsync}
     */
    public CompletableFuture<@Nullable Void> stream(Inputs inputs, Consumer<Prediction> consumer) {
        List<Tensor> tensors = tensors(inputs);
        RequestTrace trace = trace();
        PredictionSinks.Streaming future = new PredictionSinks.Streaming(name(), consumer, trace);
        long now = clock.nanos();
        future.call(engine.infer(request(tensors, now, deadline(now), trace), future));
        if (settings.timeoutNanos > 0) {
            var unused = future.orTimeout(settings.timeoutNanos, TimeUnit.NANOSECONDS);
        }
        return future;
    }

    /**
     * The responses of a decoupled model as a stream, whose steps wait for the next one. Closing it cancels the request;
     * a failure of the model is thrown by the step that would have returned the response.
     *
     * @throws ServingException as {@link #predictAsync}
     */
    public Stream<Prediction> stream(Inputs inputs) {
        LinkedBlockingQueue<Object> queue = new LinkedBlockingQueue<>();
        Object end = new Object();
        CompletableFuture<@Nullable Void> done = stream(inputs, queue::add);
        var unused = done.whenComplete((result, failure) -> queue.add(failure == null ? end : failure));
        return StreamSupport.stream(
                        new Spliterators.AbstractSpliterator<Prediction>(Long.MAX_VALUE, 0) {
                            private boolean ended;

                            @Override
                            public boolean tryAdvance(Consumer<? super Prediction> action) {
                                if (ended) {
                                    return false;
                                }
                                Object next;
                                try {
                                    next = queue.take();
                                } catch (InterruptedException e) {
                                    Thread.currentThread().interrupt();
                                    ended = true;
                                    done.cancel(false);
                                    throw ServingException.of(
                                            ErrorCode.CANCELLED,
                                            "the thread that waited for model '" + name() + "' was interrupted");
                                }
                                if (next instanceof Prediction prediction) {
                                    action.accept(prediction);
                                    return true;
                                }
                                ended = true;
                                if (next instanceof Throwable failure) {
                                    throw ServingException.from(failure);
                                }
                                return false;
                            }
                        },
                        false)
                .onClose(() -> done.cancel(false));
    }

    // ---- requests ----

    private @Nullable RequestTrace trace() {
        return traces == null ? null : traces.start(name());
    }

    private long deadline(long now) {
        return settings.timeoutNanos == 0 ? Long.MAX_VALUE : now + settings.timeoutNanos;
    }

    private InferenceRequest request(List<Tensor> inputs, long now, long deadline, @Nullable RequestTrace trace) {
        Settings s = settings;
        InferenceRequest.Options options =
                trace == null && s.priority == 0 && s.sequence == null && s.signature.isEmpty()
                        ? InferenceRequest.Options.NONE
                        : new InferenceRequest.Options(s.priority, 0, s.sequence, trace, s.signature);
        return new InferenceRequest(ref, s.id, inputs, s.outputs, s.parameters, deadline, now, options);
    }

    /** The tensors of inputs, in the types that the model declares; the caller owns them. */
    private List<Tensor> tensors(Inputs inputs) {
        ModelMetadata metadata = engine.metadata(ref);
        Signature signature = metadata.signature(settings.signature);
        if (signature == null) {
            throw ServingException.invalidArgument(
                    "model '" + name() + "' has no signature '" + settings.signature + "' (expected one of: "
                            + String.join(", ", metadata.signatures().keySet()) + ")");
        }
        List<TensorSpec> specs = signature.inputs();
        List<Inputs.Value> values =
                inputs.rows() == null ? inputs.values() : RecordMapping.inputs(inputs.rows(), specs);
        List<Tensor> tensors = new ArrayList<>(values.size());
        try {
            for (int i = 0; i < values.size(); i++) {
                Inputs.Value value = values.get(i);
                TensorSpec spec = value.name().isEmpty() ? only(specs) : spec(specs, value.name());
                tensors.add(TensorEncoder.encode(spec, value.value(), value.shape()));
            }
            return tensors;
        } catch (RuntimeException e) {
            Tensor.closeAll(tensors);
            throw e;
        }
    }

    private TensorSpec only(List<TensorSpec> specs) {
        if (specs.size() == 1) {
            return specs.get(0);
        }
        Optional<TensorSpec> required = Optional.empty();
        for (TensorSpec spec : specs) {
            if (!spec.optional()) {
                if (required.isPresent()) {
                    throw ServingException.invalidArgument(
                            "model '" + name() + "' has the inputs " + names(specs) + ", and the value has no name",
                            "name each value: Inputs.named(name, value).and(name, value)");
                }
                required = Optional.of(spec);
            }
        }
        return required.orElseThrow(() -> ServingException.invalidArgument(
                "model '" + name() + "' has the inputs " + names(specs) + ", and the value has no name",
                "name the value: Inputs.named(name, value)"));
    }

    private TensorSpec spec(List<TensorSpec> specs, String name) {
        for (TensorSpec spec : specs) {
            if (spec.name().equals(name)) {
                return spec;
            }
        }
        throw ServingException.invalidArgument(
                "model '" + name() + "' has no input '" + name + "' (expected one of: " + names(specs) + ")");
    }

    private static String names(List<TensorSpec> specs) {
        return String.join(", ", specs.stream().map(TensorSpec::name).toList());
    }

    @Override
    public String toString() {
        return ref.label() != null
                ? ref.model() + ":" + ref.label()
                : ref.version() < 0 ? ref.model() : ref.model() + ":" + ref.version();
    }
}
