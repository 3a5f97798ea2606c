// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

/**
 * What the engine may assume about the runs of a model. Immutable. {@link #DEFAULT} is correct for every model that
 * takes batches of tensors; the other values make a model faster or give it more abilities.
 *
 * <pre>{@code
 * private static final ModelTraits TRAITS = ModelTraits.builder().cancellable(true).inputAlignment(64).build();
 * }</pre>
 *
 * <p>The engine asks for the traits with every batch: keep them in a field.
 */
public final class ModelTraits {
    /**
     * Batches of tensors at any address, which must match the configuration, in runs of unknown duration that cannot
     * be interrupted.
     */
    public static final ModelTraits DEFAULT = new Builder().build();

    private final int inputAlignment;
    private final boolean cancellable;
    private final boolean inline;
    private final boolean takesRequests;
    private final boolean takesTables;
    private final boolean blocking;
    private final boolean ownOutputs;
    private final boolean deviceTensors;

    private ModelTraits(Builder b) {
        this.inputAlignment = b.inputAlignment;
        this.cancellable = b.cancellable;
        this.inline = b.inline;
        this.takesRequests = b.takesRequests;
        this.takesTables = b.takesTables;
        this.blocking = b.blocking;
        this.ownOutputs = b.ownOutputs;
        this.deviceTensors = b.deviceTensors;
    }

    /** Creates a builder that starts with the values of {@link #DEFAULT}. */
    public static Builder builder() {
        return new Builder();
    }

    /** Creates a builder that starts with these values. */
    public Builder toBuilder() {
        return new Builder()
                .inputAlignment(inputAlignment)
                .cancellable(cancellable)
                .inline(inline)
                .takesRequests(takesRequests)
                .takesTables(takesTables)
                .blocking(blocking)
                .ownOutputs(ownOutputs)
                .deviceTensors(deviceTensors);
    }

    /**
     * The byte boundary on which each input tensor must start; 1, the default, for none. The engine copies tensors that
     * are not aligned.
     */
    public int inputAlignment() {
        return inputAlignment;
    }

    /** Whether {@link ModelInstance#cancel} interrupts a run. */
    public boolean cancellable() {
        return cancellable;
    }

    /**
     * Whether a run is known to take at most a few tens of microseconds, so that the thread that received the request
     * may execute it. When false, the engine measures the run time and decides.
     */
    public boolean inline() {
        return inline;
    }

    /**
     * Whether the model takes single requests instead of batches of tensors: the engine calls
     * {@link ModelInstance#execute} instead of {@link ModelInstance#run}. Required for decoupled models and for models
     * that read a request's parameters.
     */
    public boolean takesRequests() {
        return takesRequests;
    }

    /**
     * Whether the model takes tables, which clients may send in any of the common forms: numbers of any type for FP32
     * and FP64; the only input under any name; one input for each named column ({@code feature_names}) instead of one
     * matrix; columns of shape {@code [n]} or {@code [n,1]}, where {@code n} is the number of rows. The engine converts
     * them to the configured inputs.
     */
    public boolean takesTables() {
        return takesTables;
    }

    /**
     * Whether a run spends its time waiting for another process or for other models of this server. Such runs have
     * threads of their own, as many as there are instances, so that they cannot keep the models that they wait for from
     * running.
     */
    public boolean blocking() {
        return blocking;
    }

    /**
     * Whether the outputs of a model that takes requests are returned with the type and shape that the model gave them,
     * also where the configuration says otherwise; a difference is logged once for each output. When false, such an
     * output fails the request. Of a model that takes batches of tensors, this applies to the type of outputs whose shape
     * is {@linkplain io.nereid.spi.config.TensorSpec#unchecked unchecked}: it is unknown until the model has run.
     */
    public boolean ownOutputs() {
        return ownOutputs;
    }

    /**
     * Whether instances on a GPU take inputs in the memory of their GPU and may return outputs there: the engine calls
     * {@link ModelInstance#runOnDevice} for them. Has no effect on instances on processors, nor together with
     * {@link #takesRequests} or an {@link #inputAlignment} above 1.
     */
    public boolean deviceTensors() {
        return deviceTensors;
    }

    /** Creates traits. Not thread-safe. */
    public static final class Builder {
        private int inputAlignment = 1;
        private boolean cancellable;
        private boolean inline;
        private boolean takesRequests;
        private boolean takesTables;
        private boolean blocking;
        private boolean ownOutputs;
        private boolean deviceTensors;

        private Builder() {}

        /** See {@link ModelTraits#inputAlignment}. */
        public Builder inputAlignment(int bytes) {
            this.inputAlignment = bytes;
            return this;
        }

        /** See {@link ModelTraits#cancellable}. */
        public Builder cancellable(boolean value) {
            this.cancellable = value;
            return this;
        }

        /** See {@link ModelTraits#inline}. */
        public Builder inline(boolean value) {
            this.inline = value;
            return this;
        }

        /** See {@link ModelTraits#takesRequests}. */
        public Builder takesRequests(boolean value) {
            this.takesRequests = value;
            return this;
        }

        /** See {@link ModelTraits#takesTables}. */
        public Builder takesTables(boolean value) {
            this.takesTables = value;
            return this;
        }

        /** See {@link ModelTraits#blocking}. */
        public Builder blocking(boolean value) {
            this.blocking = value;
            return this;
        }

        /** See {@link ModelTraits#ownOutputs}. */
        public Builder ownOutputs(boolean value) {
            this.ownOutputs = value;
            return this;
        }

        /** See {@link ModelTraits#deviceTensors}. */
        public Builder deviceTensors(boolean value) {
            this.deviceTensors = value;
            return this;
        }

        /** Creates the traits. */
        public ModelTraits build() {
            return new ModelTraits(this);
        }
    }
}
