// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tfdata;

import io.nereid.base.ServingException;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.Signature;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import java.util.List;
import java.util.Locale;

/**
 * Decides which signatures of a SavedModel can be called with examples, as TensorFlow Serving does: by the keys of their
 * inputs and outputs, whatever their method is, because TensorFlow 2 gives every signature the method for predictions.
 * All other models take features by the names of their inputs. Stateless.
 *
 * <p>The texts are those of TensorFlow Serving's {@code classifier.cc} and {@code regressor.cc}.
 */
public final class ExampleSignatures {
    /** The platform of models whose signatures are called with serialized examples. */
    public static final String SAVED_MODEL = "tensorflow_savedmodel";

    private static final String INPUTS = "inputs";
    private static final String CLASSES = "classes";
    private static final String SCORES = "scores";
    private static final String OUTPUTS = "outputs";

    private ExampleSignatures() {}

    /** Whether the signatures of a model are TensorFlow's. */
    public static boolean ofSavedModel(ModelMetadata metadata) {
        return metadata.platform().equals(SAVED_MODEL);
    }

    /**
     * Rejects a signature that cannot classify or regress.
     *
     * @param classify whether it is to give classes, and not one number for each example
     * @throws ServingException INVALID_ARGUMENT with the reason
     */
    public static void check(ModelMetadata metadata, Signature signature, boolean classify) {
        if (!ofSavedModel(metadata)) {
            return;
        }
        String kind = classify ? "classification" : "regression";
        int outputs = signature.outputs().size();
        if (signature.inputs().size() != 1) {
            throw refused("Expected one input Tensor.", signature);
        }
        if (classify && outputs != 1 && outputs != 2) {
            throw refused("Expected one or two output Tensors, found " + outputs, signature);
        }
        if (!classify && outputs != 1) {
            throw refused("Expected one output Tensor.", signature);
        }
        if (!has(signature.inputs(), INPUTS)) {
            throw refused("No " + kind + " inputs found in SignatureDef: " + text(signature), signature);
        }
        if (classify && !has(signature.outputs(), CLASSES) && !has(signature.outputs(), SCORES)) {
            throw refused(
                    "Expected classification signature outputs to contain at least one of \"" + CLASSES + "\" or \""
                            + SCORES + "\". Signature was: " + text(signature),
                    signature);
        }
        if (!classify && !has(signature.outputs(), OUTPUTS)) {
            throw refused("No regression outputs found in SignatureDef: " + text(signature), signature);
        }
        DataType type = signature.inputs().get(0).dataType();
        if (type != DataType.BYTES) {
            throw refused(
                    "Expects arg[0] to be " + TfDataType.of(type).name().toLowerCase(Locale.ROOT)
                            + " but string is provided",
                    signature);
        }
    }

    private static ServingException refused(String why, Signature signature) {
        return ServingException.invalidArgument(
                why,
                "examples need a signature with the string input '" + INPUTS + "' and the outputs '" + CLASSES
                        + "' or '"
                        + SCORES + "' to classify, '" + OUTPUTS + "' to regress; call this one with predict and "
                        + names(signature.inputs()));
    }

    private static boolean has(List<TensorSpec> specs, String name) {
        return specs.stream().anyMatch(spec -> spec.name().equals(name));
    }

    private static List<String> names(List<TensorSpec> specs) {
        return specs.stream().map(TensorSpec::name).toList();
    }

    private static String text(Signature signature) {
        return "inputs " + names(signature.inputs()) + ", outputs " + names(signature.outputs()) + ", method_name "
                + signature.method();
    }
}
