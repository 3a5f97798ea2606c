// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.policy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.management.VersionLabel;
import io.nereid.spi.management.WeightedVersion;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;

/**
 * Whether a label may be assigned to a version that is not available (TensorFlow Serving:
 * {@code --allow_version_labels_for_unavailable_models}). Immutable; {@link #check} is a pure function.
 */
public enum LabelAssignmentPolicy {
    /** Never: every target must be available. */
    SERVING,
    /**
     * If the label is new for the model or already refers to that version: it never moves away from an available
     * version.
     */
    FIRST_ASSIGNMENT,
    /** Always. */
    ANY;

    /**
     * Checks all new labels of a model before any of them is assigned. Shadow versions are not checked, because
     * requests do not depend on them.
     *
     * @param model the name of the model
     * @param assigned the new labels
     * @param current the current labels
     * @param available whether a version is available
     * @throws ServingException FAILED_PRECONDITION for the first label, by name, with a target that is not allowed
     */
    public void check(
            String model,
            Map<String, VersionLabel> assigned,
            Map<String, VersionLabel> current,
            LongPredicate available) {
        if (this == ANY) {
            return;
        }
        new TreeMap<>(assigned).forEach((name, label) -> {
            for (WeightedVersion share : label.targets()) {
                if (!available.test(share.version())
                        && !(this == FIRST_ASSIGNMENT && first(current.get(name), share))) {
                    throw ServingException.of(
                            ErrorCode.FAILED_PRECONDITION,
                            "Request to assign label to version " + share.version() + " of model " + model
                                    + ", which is not currently available for inference",
                            "label '" + name + "' can be given to it when it serves: load the version first, then move"
                                    + " the label");
                }
            }
        });
    }

    private static boolean first(@Nullable VersionLabel current, WeightedVersion share) {
        return current == null || current.targets().stream().anyMatch(s -> s.version() == share.version());
    }
}
