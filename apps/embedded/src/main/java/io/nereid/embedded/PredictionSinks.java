// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.observe.RequestTrace;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ResponseSink;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** What receives the responses of a prediction: for a caller that waits, for a future, for a stream. */
final class PredictionSinks {
    private PredictionSinks() {}

    static ServingException late(String model) {
        return ServingException.of(
                ErrorCode.DEADLINE_EXCEEDED, "model '" + model + "' did not answer within the time limit");
    }

    private static ServingException second(String model) {
        return ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "model '" + model + "' gave more than one response",
                "call stream(...) for a decoupled model");
    }

    private static ServingException none(String model) {
        return ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "model '" + model + "' ended without a response",
                "call stream(...) for a decoupled model");
    }

    /** Ends the trace of a request. */
    private static void end(@Nullable RequestTrace trace) {
        if (trace != null) {
            trace.end();
        }
    }

    /** One response for the thread that waits. Used for one call. */
    static final class Waiting implements ResponseSink {
        private final String model;
        private final Thread waits = Thread.currentThread();
        private final @Nullable RequestTrace trace;

        @GuardedBy("this") private @Nullable InferenceResponse response;

        @GuardedBy("this") private @Nullable ServingException failure;

        @GuardedBy("this") private boolean abandoned;

        private volatile boolean ended;

        Waiting(String model, @Nullable RequestTrace trace) {
            this.model = model;
            this.trace = trace;
        }

        @Override
        public void next(InferenceResponse next, boolean last) {
            synchronized (this) {
                if (abandoned || next.outputs().isEmpty() && last && response != null) {
                    next.close();
                } else if (response != null) {
                    next.close();
                    response.close();
                    response = null;
                    abandoned = true;
                    failure = second(model);
                } else if (next.outputs().isEmpty() && last) {
                    next.close();
                    failure = failure == null ? none(model) : failure;
                } else {
                    response = next;
                }
            }
            if (last) {
                end();
            }
        }

        @Override
        public void fail(ServingException e) {
            synchronized (this) {
                failure = e;
                if (response != null) {
                    response.close();
                    response = null;
                }
            }
            end();
        }

        private void end() {
            PredictionSinks.end(trace);
            ended = true;
            if (Thread.currentThread() != waits) {
                LockSupport.unpark(waits);
            }
        }

        /**
         * Waits for the response, which the caller closes.
         *
         * @param deadline on the clock; {@link Long#MAX_VALUE} for none
         */
        InferenceResponse await(InferenceCall call, Clock clock, long deadline) {
            while (!ended) {
                if (deadline == Long.MAX_VALUE) {
                    LockSupport.park(this);
                } else {
                    long left = deadline - clock.nanos();
                    if (left <= 0) {
                        return abandon(call, late(model));
                    }
                    LockSupport.parkNanos(this, left);
                }
                if (!ended && Thread.currentThread().isInterrupted()) {
                    return abandon(
                            call,
                            ServingException.of(
                                    ErrorCode.CANCELLED,
                                    "the thread that waited for model '" + model + "' was interrupted"));
                }
            }
            synchronized (this) {
                ServingException e = failure;
                InferenceResponse result = response;
                if (e != null || result == null) {
                    throw e == null ? none(model) : located(e);
                }
                return result;
            }
        }

        private InferenceResponse abandon(InferenceCall call, ServingException reason) {
            synchronized (this) {
                abandoned = true;
                if (response != null) {
                    response.close();
                    response = null;
                }
            }
            call.cancel();
            throw reason;
        }

        /** The same error with the caller's stack. */
        private static ServingException located(ServingException e) {
            ServingException here = ServingException.wrap(e.code(), e.getMessage(), e.remedy(), e);
            return here;
        }
    }

    /** A future whose end, other than by the last response, cancels the request. */
    abstract static class Cancelling<T extends @Nullable Object> extends CompletableFuture<T> {
        private final String model;
        private volatile @Nullable InferenceCall call;

        Cancelling(String model) {
            this.model = model;
        }

        final void call(InferenceCall started) {
            call = started;
            if (isDone()) {
                started.cancel();
            }
        }

        @Override
        public boolean completeExceptionally(Throwable e) {
            boolean first = super.completeExceptionally(e instanceof TimeoutException ? late(model) : e);
            if (first) {
                cancelCall();
            }
            return first;
        }

        @Override
        public boolean cancel(boolean interrupt) {
            boolean cancelled = super.cancel(interrupt);
            cancelCall();
            return cancelled;
        }

        private void cancelCall() {
            InferenceCall started = call;
            if (started != null) {
                started.cancel();
            }
        }
    }

    /** One response as a future. Cancelling it, and the end of its time, cancel the request. */
    static final class Future extends Cancelling<Prediction> implements ResponseSink {
        private final String model;
        private final @Nullable RequestTrace trace;

        @GuardedBy("this") private @Nullable Prediction response;

        Future(String model, @Nullable RequestTrace trace) {
            super(model);
            this.model = model;
            this.trace = trace;
        }

        @Override
        public void next(InferenceResponse next, boolean last) {
            boolean empty = next.outputs().isEmpty() && last;
            Prediction prediction = Prediction.of(next);
            Prediction result;
            synchronized (this) {
                if (!empty && response != null) {
                    completeExceptionally(second(model));
                } else if (!empty) {
                    response = prediction;
                }
                result = response;
            }
            if (last) {
                PredictionSinks.end(trace);
                if (result == null) {
                    completeExceptionally(none(model));
                } else {
                    complete(result);
                }
            }
        }

        @Override
        public void fail(ServingException e) {
            PredictionSinks.end(trace);
            completeExceptionally(e);
        }
    }

    /** Each response for a consumer; the future ends with the last one. Cancelling it cancels the request. */
    static final class Streaming extends Cancelling<@Nullable Void> implements ResponseSink {
        private final Consumer<Prediction> consumer;
        private final @Nullable RequestTrace trace;

        Streaming(String model, Consumer<Prediction> consumer, @Nullable RequestTrace trace) {
            super(model);
            this.consumer = consumer;
            this.trace = trace;
        }

        @Override
        public void next(InferenceResponse next, boolean last) {
            if (isDone() || next.outputs().isEmpty() && last) {
                next.close();
            } else {
                try {
                    consumer.accept(Prediction.of(next));
                } catch (RuntimeException e) {
                    completeExceptionally(e);
                }
            }
            if (last) {
                PredictionSinks.end(trace);
                complete(null);
            }
        }

        @Override
        public void fail(ServingException e) {
            PredictionSinks.end(trace);
            completeExceptionally(e);
        }
    }
}
