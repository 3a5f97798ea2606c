// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.execution;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Splits the model's outputs into the responses of a batch: validates them against the configuration, reshapes them
 * for clients, and returns each request's rows as slices of the run's output. Thread-safe: the only state is which
 * differences have been logged.
 */
public final class OutputSplitter {
    private static final Logger LOG = LoggerFactory.getLogger(OutputSplitter.class);

    private final String model;
    private final IoMapping plan;
    private final boolean ownOutputs;
    /** The outputs whose difference from the configuration has been logged. */
    private final Set<String> reported = ConcurrentHashMap.newKeySet();

    /** @param ownOutputs see {@link io.nereid.backend.ModelTraits#ownOutputs} */
    public OutputSplitter(String model, IoMapping plan, boolean ownOutputs) {
        this.model = model;
        this.plan = plan;
        this.ownOutputs = ownOutputs;
    }

    /**
     * The response of a job that ran alone. Takes over the outputs, also when it throws.
     *
     * @param wanted the outputs that the run was asked for, in that order
     */
    List<Tensor> one(InferenceJob job, List<Tensor> outputs, List<String> wanted) {
        try {
            check(outputs, wanted, job.batchSize());
            LengthPadding lengths = plan.lengths();
            if (lengths != null) {
                lengths.learn(outputs, lengths.length(job.request().inputs()));
            }
            if (plan.plainOutputs()) {
                return outputs;
            }
            List<Tensor> answer = new ArrayList<>(outputs.size());
            for (int i = 0; i < outputs.size(); i++) {
                answer.add(asClient(outputs.get(i), i, job));
            }
            Tensor.closeAll(outputs);
            return answer;
        } catch (RuntimeException e) {
            Tensor.closeAll(outputs);
            throw e;
        }
    }

    /**
     * The response to one request of a model that takes requests, reduced to the requested outputs; otherwise as
     * {@link #one}.
     */
    List<Tensor> request(InferenceJob job, List<Tensor> outputs, List<String> wanted) {
        List<Tensor> answer = new ArrayList<>(wanted.size());
        try {
            boolean[] asMade = new boolean[outputs.size()];
            for (int i = 0; i < asMade.length; i++) {
                Tensor t = outputs.get(i);
                IoMapping.Output spec = plan.output(t.name(), i);
                if (ownOutputs && spec != null && plan.allOutputs().contains(t.name())) {
                    asMade[i] = !fits(t, spec, job);
                } else {
                    // A state becomes an input, which must be as configured.
                    check(t, spec, -1);
                }
            }
            for (String name : wanted) {
                for (int i = 0; i < asMade.length; i++) {
                    Tensor t = outputs.get(i);
                    if (t.name().equals(name)) {
                        answer.add(asMade[i] ? t.retain() : asClient(t, i, job));
                    }
                }
            }
        } catch (RuntimeException e) {
            Tensor.closeAll(answer);
            throw e;
        } finally {
            Tensor.closeAll(outputs);
        }
        return answer;
    }

    /**
     * Returns each job's part of each output, in the order that the job requested. The caller keeps the outputs.
     *
     * @param asked the outputs that the run was asked for, in that order
     * @param wanted the outputs that each job requested
     * @param rows rows of the whole run
     * @param extra how many of them are padding rows at the end, which are discarded
     * @param length the length to which the inputs were padded; {@link LengthPadding#NONE} if they were not
     * @throws ServingException INVALID_ARGUMENT when outputs of padded inputs cannot be cut back
     */
    List<List<Tensor>> many(
            List<InferenceJob> jobs,
            List<Tensor> outputs,
            List<String> asked,
            List<List<String>> wanted,
            int rows,
            int extra,
            int length) {
        check(outputs, asked, rows);
        LengthPadding lengths = length < 0 ? null : plan.lengths();
        if (lengths != null && !lengths.fits(outputs, length)) {
            throw lengths.unfit();
        }
        int[] at = new int[outputs.size()];
        List<List<Tensor>> parts = new ArrayList<>(jobs.size());
        try {
            for (int j = 0; j < jobs.size(); j++) {
                parts.add(part(jobs.get(j), outputs, wanted.get(j), at, rows, lengths));
            }
            if (extra > 0) {
                skip(jobs.get(jobs.size() - 1), outputs, at, rows, extra);
            }
            for (int o = 0; o < at.length; o++) {
                if (at[o] != outputs.get(o).byteLength()) {
                    throw unlike(outputs.get(o), "exactly as many elements as the inputs of its requests imply");
                }
            }
            return parts;
        } catch (RuntimeException e) {
            parts.forEach(Tensor::closeAll);
            throw e;
        }
    }

    private List<Tensor> part(
            InferenceJob job,
            List<Tensor> outputs,
            List<String> wanted,
            int[] at,
            int rows,
            @Nullable LengthPadding lengths) {
        @Nullable Tensor[] part = new @Nullable Tensor[wanted.size()];
        try {
            for (int o = 0; o < outputs.size(); o++) {
                Tensor whole = outputs.get(o);
                IoMapping.Output spec = known(whole, o);
                Shape shape = spec.source() == null
                        ? plan.clientShape(spec, whole.shape()).withFirst(job.batchSize())
                        : scattered(spec, spec.source(), job, job.batchSize());
                long elements = spec.source() == null ? elements(whole, rows, job.batchSize()) : shape.elementCount();
                int length = bytes(whole, at[o], elements);
                int position = wanted.indexOf(whole.name());
                if (position >= 0) {
                    part[position] = lengths != null && lengths.cuts(whole.name())
                            ? lengths.cut(
                                    whole,
                                    shape,
                                    at[o],
                                    lengths.length(job.request().inputs()))
                            : whole.retainSlice(shape, at[o], length);
                }
                at[o] += length;
            }
            List<Tensor> answer = new ArrayList<>(part.length);
            for (Tensor t : part) {
                if (t != null) {
                    answer.add(t);
                }
            }
            return answer;
        } catch (RuntimeException e) {
            for (Tensor t : part) {
                if (t != null) {
                    t.close();
                }
            }
            throw e;
        }
    }

    /** Advances past the padding rows, whose shapes are like those of {@code like}. */
    private void skip(InferenceJob like, List<Tensor> outputs, int[] at, int rows, int extra) {
        for (int o = 0; o < outputs.size(); o++) {
            Tensor whole = outputs.get(o);
            IoMapping.Output spec = known(whole, o);
            long elements = spec.source() != null
                    ? scattered(spec, spec.source(), like, extra).elementCount()
                    : elements(whole, rows, extra);
            at[o] += bytes(whole, at[o], elements);
        }
    }

    private static long elements(Tensor whole, int rows, int part) {
        return rows == 0 ? 0 : whole.shape().elementCount() / rows * part;
    }

    /** The length in bytes of the next {@code elements} elements. */
    private int bytes(Tensor whole, int from, long elements) {
        long end;
        if (whole.dataType() != DataType.BYTES) {
            end = from + elements * whole.dataType().size();
        } else {
            int at = from;
            for (long i = 0; i < elements; i++) {
                if (at > whole.byteLength() - 4) {
                    throw unlike(whole, "as many strings as its shape has elements");
                }
                int length = whole.region().getInt(whole.offset() + at);
                if (length < 0 || length > whole.byteLength() - at - 4) {
                    throw unlike(whole, "strings that end within the tensor");
                }
                at += 4 + length;
            }
            end = at;
        }
        if (end > whole.byteLength()) {
            throw unlike(whole, "at least " + end + " bytes, got " + whole.byteLength());
        }
        return (int) end - from;
    }

    /** The output in the shape that clients see, with a reference of its own. */
    private Tensor asClient(Tensor t, int guess, InferenceJob job) {
        IoMapping.Output spec = known(t, guess);
        Shape shape;
        if (spec.source() == null) {
            shape = plan.clientShape(spec, t.shape());
        } else {
            shape = scattered(spec, spec.source(), job, job.batchSize());
            if (shape.elementCount() != t.shape().elementCount()) {
                throw unlike(t, shape + ", according to its request's input");
            }
        }
        return t.retainAs(t.name(), shape);
    }

    /** The dimensions of a scattered output: its variable dimensions get the sizes of the source input. */
    private Shape scattered(IoMapping.Output spec, String source, InferenceJob job, int rows) {
        Shape dims = spec.spec().shape();
        for (Tensor t : job.request().inputs()) {
            if (t.name().equals(source)) {
                int skip = plan.batched() ? 1 : 0;
                long[] shape = new long[dims.rank() + skip];
                if (skip > 0) {
                    shape[0] = rows;
                }
                for (int i = 0; i < dims.rank(); i++) {
                    shape[i + skip] = dims.dim(i) >= 0
                            ? dims.dim(i)
                            : i + skip < t.shape().rank() ? t.shape().dim(i + skip) : 1;
                }
                return Shape.of(shape);
            }
        }
        throw ServingException.invalidArgument("input '" + source + "' is missing in a request for model '" + model
                + "', which determines the shape of output '" + spec.name() + "' (expected: the input to be present)");
    }

    private void check(List<Tensor> outputs, List<String> asked, int rows) {
        if (outputs.size() != asked.size()) {
            throw ServingException.of(
                    ErrorCode.INTERNAL,
                    "model '" + model + "' returned " + outputs.size() + " outputs (expected: " + asked.size() + ": "
                            + asked + ")");
        }
        for (int i = 0; i < asked.size(); i++) {
            Tensor t = outputs.get(i);
            if (!t.name().equals(asked.get(i))) {
                throw ServingException.of(
                        ErrorCode.INTERNAL,
                        "model '" + model + "' returned output '" + t.name() + "' (expected: '" + asked.get(i) + "')");
            }
            check(t, plan.output(t.name(), i), rows);
        }
    }

    private void check(Tensor t, IoMapping.@Nullable Output spec, int rows) {
        if (spec == null) {
            throw ServingException.of(
                    ErrorCode.INTERNAL,
                    "model '" + model + "' returned output '" + t.name()
                            + "', which its configuration does not have (expected: " + plan.allOutputs() + ")");
        }
        if (t.dataType() != spec.dataType() && !(ownOutputs && spec.spec().unchecked())) {
            throw ServingException.of(
                    ErrorCode.INTERNAL,
                    "model '" + model + "' returned output '" + t.name() + "' of type " + t.dataType() + " (expected: "
                            + spec.dataType() + ", as configured)");
        }
        if (spec.source() != null) {
            return;
        }
        if (plan.batched() && rows >= 0 && (t.shape().rank() == 0 || t.shape().dim(0) != rows)) {
            throw ServingException.of(
                    ErrorCode.INTERNAL,
                    "model '" + model + "' returned output '" + t.name() + "' of shape " + t.shape()
                            + " for a batch of " + rows + " rows (expected first dimension " + rows + ")",
                    "set max_batch_size to 0 if the first dimension is not a batch dimension");
        }
        if (!spec.spec().unchecked() && !spec.accepted().accepts(t.shape())) {
            throw unlike(t, spec.accepted() + ", as configured");
        }
    }

    /** Whether the output's shape is as configured. Another shape or type is logged the first time. */
    private boolean fits(Tensor t, IoMapping.Output spec, InferenceJob job) {
        boolean fits = spec.source() == null
                ? spec.spec().unchecked() || spec.accepted().accepts(t.shape())
                : scattered(spec, spec.source(), job, job.batchSize()).elementCount()
                        == t.shape().elementCount();
        if ((!fits || t.dataType() != spec.dataType()) && reported.add(t.name())) {
            LOG.warn(
                    "model '{}' returns output '{}' as {} {} (configured: {} {}); clients get it as the model returns it",
                    model,
                    t.name(),
                    t.dataType(),
                    t.shape(),
                    spec.dataType(),
                    spec.accepted());
        }
        return fits;
    }

    private IoMapping.Output known(Tensor t, int guess) {
        IoMapping.Output spec = plan.output(t.name(), guess);
        if (spec == null) {
            throw new IllegalStateException("output '" + t.name() + "' was checked before");
        }
        return spec;
    }

    private ServingException unlike(Tensor t, String expected) {
        return ServingException.of(
                ErrorCode.INTERNAL,
                "model '" + model + "' returned output '" + t.name() + "' of shape " + t.shape() + " (expected: "
                        + expected + ")");
    }
}
