// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.common;

import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.protocols.v1.common.TfServingMetrics.Api;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.Signature;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelStatus;
import io.nereid.tfdata.ExampleSignatures;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Looks up models and signatures. Error messages contain the wording of both TensorFlow Serving and KServe, whose
 * clients match on it. Thread-safe: immutable.
 */
public final class ModelLookup {
    private static final Options DEFAULT = Options.NONE.withSignature(ModelMetadata.DEFAULT_SIGNATURE);
    private static final Set<String> METHODS = Set.of(Signature.PREDICT, Signature.CLASSIFY, Signature.REGRESS);

    private final InferenceEngine engine;
    private final ModelControl control;
    private final boolean methodCheck;

    public ModelLookup(InferenceEngine engine, ModelControl control, boolean methodCheck) {
        this.engine = engine;
        this.control = control;
        this.methodCheck = methodCheck;
    }

    /** The metadata of a model. */
    public ModelMetadata metadata(ModelRef model) {
        try {
            return engine.metadata(model);
        } catch (ServingException e) {
            throw missing(model, e);
        }
    }

    private ServingException missing(ModelRef ref, ServingException e) {
        if (e.code() != ErrorCode.NOT_FOUND) {
            return e;
        }
        String servable = "Servable not found for request: "
                + (ref.version() == ModelRef.ANY
                        ? "Latest(" + ref.model() + ")"
                        : "Specific(" + ref.model() + ", " + ref.version() + ")");
        if (status(ref.model()) == null) {
            return ServingException.of(
                    ErrorCode.NOT_FOUND, servable + ". " + unknown(ref.model()).getMessage(), e.remedy());
        }
        String text = e.getMessage().contains("Servable not found for request: ")
                ? e.getMessage()
                : servable + ". " + e.getMessage();
        if (ref.version() == ModelRef.ANY && ref.label() == null) {
            return ServingException.of(
                    ErrorCode.UNAVAILABLE, "Model with name " + ref.model() + " is not ready. " + text, e.remedy());
        }
        return ServingException.of(ErrorCode.NOT_FOUND, text, e.remedy());
    }

    /** The status of a model, which must exist. */
    public ModelStatus known(String model) {
        ModelStatus status = status(model);
        if (status == null) {
            ServingException unknown = unknown(model);
            throw ServingException.of(
                    ErrorCode.NOT_FOUND, "Could not find any versions of model " + model + ". " + unknown.getMessage());
        }
        return status;
    }

    private @Nullable ModelStatus status(String model) {
        for (ModelStatus status : control.index()) {
            if (status.model().equals(model)) {
                return status;
            }
        }
        return null;
    }

    private static ServingException unknown(String model) {
        return ServingException.of(ErrorCode.NOT_FOUND, "Model with name " + model + " does not exist.");
    }

    /** The options of a request for a signature; the default one is named too, which makes rows of one value flat. */
    public static Options options(String name) {
        return name.isEmpty() || name.equals(ModelMetadata.DEFAULT_SIGNATURE)
                ? DEFAULT
                : Options.NONE.withSignature(name);
    }

    /** The signature that a request names, checked for its API if the options demand it. */
    public Signature signature(ModelMetadata metadata, String name, Api api) {
        String key = name.isEmpty() ? ModelMetadata.DEFAULT_SIGNATURE : name;
        Signature found = metadata.signatures().get(key);
        if (found == null) {
            throw ServingException.invalidArgument(
                    api == Api.PREDICT
                            ? "Serving signature name: \"" + key + "\" not found in signature def"
                            : "No signature was found with the name: " + key,
                    NameSuggestions.didYouMean(
                            key,
                            metadata.signatures().keySet(),
                            "the signatures of model '" + metadata.id().model() + "' are "
                                    + metadata.signatures().keySet().stream()
                                            .sorted()
                                            .toList()));
        }
        if (methodCheck) {
            check(found, api);
        }
        if (api != Api.PREDICT) {
            ExampleSignatures.check(metadata, found, api == Api.CLASSIFY);
        }
        return found;
    }

    private static void check(Signature signature, Api api) {
        if (api != Api.PREDICT) {
            ExampleOutputs.check(signature, api == Api.CLASSIFY ? Signature.CLASSIFY : Signature.REGRESS);
        } else if (!METHODS.contains(signature.method())) {
            throw ServingException.invalidArgument(
                    "Expected prediction signature method_name to be one of {" + Signature.PREDICT + ", "
                            + Signature.CLASSIFY + ", " + Signature.REGRESS + "}. Was: " + signature.method());
        }
    }
}
