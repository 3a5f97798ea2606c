// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.request;

import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.config.BatchSizePolicy;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Validates a request against the metadata of a model, before it is queued. Created once per servable; immutable. The
 * error messages are Triton's, because clients match on them.
 */
public final class RequestValidator {
    private static final String BATCH_NOTE =
            " NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended"
                    + " to each input shape. If you want to specify the full shape including the batch dim in your input"
                    + " dims config, try setting max_batch_size to zero. See the model configuration docs for more info on"
                    + " max_batch_size.";

    private final ModelMetadata metadata;
    private final BatchSizePolicy fit;
    private final int maxRows;
    private final int required;

    RequestValidator(ModelMetadata metadata) {
        this(metadata, BatchSizePolicy.NONE);
    }

    /**
     * Creates a validator for a model whose large requests may be split, so that a request may exceed the batch size
     * of a run.
     */
    public RequestValidator(ModelMetadata metadata, BatchSizePolicy fit) {
        this.fit = fit;
        this.maxRows = Math.max(metadata.maxBatchSize(), fit.maxRequestRows());
        this.metadata = metadata;
        this.required =
                (int) metadata.inputs().stream().filter(s -> !s.optional()).count();
    }

    /**
     * Validates the inputs and returns them in the model's order; the request's own list when it already has that
     * order.
     */
    public List<Tensor> inputs(InferenceRequest request) {
        List<Tensor> given = request.inputs();
        List<TensorSpec> specs = metadata.inputs();
        boolean ordered = given.size() == specs.size();
        for (int i = 0; ordered && i < given.size(); i++) {
            ordered = given.get(i).name().equals(specs.get(i).name());
        }
        List<Tensor> inputs = ordered ? given : reorder(given);
        int next = 0;
        for (int i = 0; i < specs.size() && next < inputs.size(); i++) {
            TensorSpec spec = specs.get(i);
            Tensor input = inputs.get(next);
            if (input.name().equals(spec.name())) {
                check(spec, input);
                next++;
            }
        }
        return inputs;
    }

    /** The number of rows of validated inputs; 1 for a model without a batch dimension. */
    public int batchSize(List<Tensor> inputs) {
        if (metadata.maxBatchSize() <= 0 || inputs.isEmpty()) {
            return 1;
        }
        long rows = inputs.get(0).shape().dim(0);
        for (int i = 1; i < inputs.size(); i++) {
            if (inputs.get(i).shape().dim(0) != rows) {
                throw ServingException.invalidArgument("input '" + inputs.get(i).name()
                        + "' batch size does not match other inputs for '" + model() + "'. Expected " + rows + ", got "
                        + inputs.get(i).shape().dim(0));
            }
        }
        if (rows > maxRows) {
            if (!fit.equals(BatchSizePolicy.NONE)) {
                throw ServingException.invalidArgument(
                        "Task size " + rows + " is larger than maximum input batch size " + maxRows,
                        "split the request, or raise max_batch_size in the batching parameters");
            }
            throw ServingException.invalidArgument(
                    "inference request batch-size must be <= " + metadata.maxBatchSize() + " for '" + model()
                            + "'. Got " + rows,
                    "split the request, or raise max_batch_size in the model's configuration");
        }
        return (int) rows;
    }

    /** Whether the model has all requested outputs. */
    public boolean has(List<RequestedOutput> wanted) {
        for (int i = 0; i < wanted.size(); i++) {
            if (find(metadata.outputs(), wanted.get(i).name()) == null) {
                return false;
            }
        }
        return true;
    }

    /** Validates the requested outputs. */
    public void outputs(List<RequestedOutput> wanted) {
        for (int i = 0; i < wanted.size(); i++) {
            String name = wanted.get(i).name();
            if (find(metadata.outputs(), name) == null) {
                throw ServingException.invalidArgument(
                        "unexpected inference output '" + name + "' for model '" + model() + "'",
                        suggest(name, metadata.outputs()));
            }
            for (int j = 0; j < i; j++) {
                if (wanted.get(j).name().equals(name)) {
                    throw ServingException.invalidArgument(
                            "output '" + name + "' already requested for model '" + model() + "'");
                }
            }
        }
    }

    private List<Tensor> reorder(List<Tensor> given) {
        for (int i = 0; i < given.size(); i++) {
            String name = given.get(i).name();
            for (int j = 0; j < i; j++) {
                if (given.get(j).name().equals(name)) {
                    throw ServingException.invalidArgument("input '" + name + "' already exists in request");
                }
            }
        }
        List<Tensor> inputs = new ArrayList<>(given.size());
        List<String> missing = new ArrayList<>();
        for (TensorSpec spec : metadata.inputs()) {
            Tensor found = null;
            for (Tensor t : given) {
                if (t.name().equals(spec.name())) {
                    found = t;
                }
            }
            if (found != null) {
                inputs.add(found);
            } else if (!spec.optional()) {
                missing.add(spec.name());
            }
        }
        if (!missing.isEmpty()) {
            throw ServingException.invalidArgument(countText() + " but got " + given.size() + " inputs for model '"
                    + model() + "'. Got input(s) "
                    + quoted(given.stream().map(Tensor::name).toList())
                    + ", but missing required input(s) " + quoted(missing) + ". Please provide all required input(s).");
        }
        for (Tensor t : given) {
            if (find(metadata.inputs(), t.name()) == null) {
                throw ServingException.invalidArgument(
                        "unexpected inference input '" + t.name() + "' for model '" + model() + "'",
                        suggest(t.name(), metadata.inputs()));
            }
        }
        return inputs;
    }

    private String countText() {
        int all = metadata.inputs().size();
        return required == all
                ? "expected " + all + " inputs"
                : "expected number of inputs between " + required + " and " + all;
    }

    private void check(TensorSpec spec, Tensor input) {
        if (input.dataType() != spec.dataType()) {
            throw ServingException.invalidArgument("inference input '" + input.name() + "' data-type is '"
                    + input.dataType() + "', but model '" + model() + "' expects '" + spec.dataType() + "'");
        }
        Shape shape = input.shape();
        if ((!spec.unchecked() && !spec.shape().accepts(shape)) || (metadata.maxBatchSize() > 0 && shape.rank() == 0)) {
            throw ServingException.invalidArgument("unexpected shape for input '" + input.name() + "' for model '"
                    + model() + "'. Expected " + spec.shape() + ", got " + shape + "."
                    + (metadata.maxBatchSize() > 0 ? BATCH_NOTE : ""));
        }
        if (spec.dataType() == DataType.BYTES) {
            checkBytes(input);
        } else {
            long expected = shape.byteSize(spec.dataType());
            if (expected != input.byteLength()) {
                throw ServingException.invalidArgument("input byte size mismatch for input '" + input.name()
                        + "' for model '" + model() + "'. Expected " + expected + ", got " + input.byteLength());
            }
        }
    }

    private void checkBytes(Tensor input) {
        long expected = input.shape().elementCount();
        int end = input.offset() + input.byteLength();
        int at = input.offset();
        long n = 0;
        while (at < end) {
            if (end - at < 4) {
                throw ServingException.invalidArgument("incomplete string length indicator for inference input '"
                        + input.name() + "' for model '" + model() + "', expecting 4 bytes but only "
                        + (end - at)
                        + " bytes available. Please make sure the string length indicator is in one contiguous"
                        + " buffer.");
            }
            int length = input.region().getInt(at);
            at += 4;
            if (length < 0 || length > end - at) {
                throw ServingException.invalidArgument("incomplete string data for inference input '" + input.name()
                        + "' for model '" + model() + "', expecting string of length "
                        + Integer.toUnsignedString(length) + " bytes but only " + (end - at) + " bytes available.");
            }
            at += length;
            n++;
        }
        if (n != expected) {
            throw ServingException.invalidArgument("unexpected number of string elements " + n
                    + " for inference input '" + input.name() + "' for model '" + model() + "', expecting " + expected);
        }
    }

    private String model() {
        return metadata.id().model();
    }

    public static @Nullable TensorSpec find(List<TensorSpec> specs, String name) {
        for (TensorSpec spec : specs) {
            if (spec.name().equals(name)) {
                return spec;
            }
        }
        return null;
    }

    private static String suggest(String name, List<TensorSpec> specs) {
        List<String> known = specs.stream().map(TensorSpec::name).toList();
        return NameSuggestions.didYouMean(name, known, "the model has " + quoted(known));
    }

    private static String quoted(List<String> names) {
        return names.isEmpty() ? "[]" : "['" + String.join("', '", names) + "']";
    }
}
