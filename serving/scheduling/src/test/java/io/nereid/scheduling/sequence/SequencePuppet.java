// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.TensorCounter;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A model that adds its input to its state: OUT is the sum, and so is every output S…OUT, whose state is the input
 * S…IN. Records the inputs of its runs. Confined to one thread.
 */
public final class SequencePuppet implements BatchRunner {
    /** Ids by row, {@code -} for a row without a request. */
    public final List<List<String>> ran = new ArrayList<>();
    /** All inputs except the client's, by row: {@code START=1 END=0}. */
    final List<List<String>> seen = new ArrayList<>();

    public final List<Integer> instances = new ArrayList<>();
    public final List<BatchCloseReason> cuts = new ArrayList<>();
    final List<Integer> retired = new ArrayList<>();
    public final List<Throwable> trouble = new ArrayList<>();
    /** Jobs that {@link #keep} has not ended. */
    public final List<InferenceJob> kept = new ArrayList<>();

    public Runnable during = () -> {};
    Runnable onRetired = () -> {};
    public boolean keep;

    public @Nullable ServingException failure;
    /** Ends one job in another way. */
    public @Nullable Consumer<InferenceJob> instead;

    private final TensorCounter tensors;

    public SequencePuppet(TensorCounter tensors) {
        this.tensors = tensors;
    }

    @Override
    public void run(int instance, List<InferenceJob> jobs, BatchCloseReason cut) {
        instances.add(instance);
        cuts.add(cut);
        ran.add(jobs.stream()
                .map(j -> SequenceBatcher.isPadding(j) ? "-" : j.request().id())
                .toList());
        seen.add(jobs.stream().map(SequencePuppet::extras).toList());
        Runnable now = during;
        during = () -> {};
        try {
            now.run();
        } catch (Throwable e) {
            trouble.add(e);
        }
        for (InferenceJob job : jobs) {
            end(job);
        }
    }

    private void end(InferenceJob job) {
        if (SequenceBatcher.isPadding(job)) {
            job.complete(sums(job), Map.of());
        } else if (keep) {
            kept.add(job);
        } else if (failure != null) {
            job.fail(failure);
        } else if (instead != null) {
            instead.accept(job);
        } else {
            job.complete(sums(job), Map.of());
        }
    }

    /** Returns the outputs of a normal response. */
    List<Tensor> sums(InferenceJob job) {
        List<Tensor> outputs = new ArrayList<>();
        int in = value(job, "IN");
        List<RequestedOutput> wanted = job.request().outputs();
        for (RequestedOutput o : wanted.isEmpty() ? List.of(new RequestedOutput("OUT", 0)) : wanted) {
            String state = o.name().endsWith("OUT") && o.name().length() > 3
                    ? o.name().substring(0, o.name().length() - 3) + "IN"
                    : "SIN";
            outputs.add(tensors.ints(o.name(), shape(job, state), in + value(job, state)));
        }
        return outputs;
    }

    private static Shape shape(InferenceJob job, String input) {
        for (Tensor t : job.request().inputs()) {
            if (t.name().equals(input)) {
                return t.shape();
            }
        }
        return job.request().inputs().get(0).shape();
    }

    private static int value(InferenceJob job, String input) {
        for (Tensor t : job.request().inputs()) {
            if (t.name().equals(input)) {
                return TensorCounter.first(t);
            }
        }
        return 0;
    }

    private static String extras(InferenceJob job) {
        StringBuilder b = new StringBuilder();
        for (Tensor t : job.request().inputs()) {
            if (!t.name().equals("IN")) {
                b.append(b.isEmpty() ? "" : " ").append(t.name()).append('=').append(TensorCounter.show(t));
            }
        }
        return b.toString();
    }

    @Override
    public boolean joinable(InferenceJob a, InferenceJob b) {
        return a.request()
                .inputs()
                .get(0)
                .shape()
                .sameBeyondFirst(b.request().inputs().get(0).shape());
    }

    @Override
    public void retired(int instance) {
        retired.add(instance);
        onRetired.run();
    }
}
