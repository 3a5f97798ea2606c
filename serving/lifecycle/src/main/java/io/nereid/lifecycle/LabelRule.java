// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelControl.Label;
import io.nereid.spi.ModelControl.Share;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;

/** When a label may be given to a version that does not serve. Immutable; its check is a pure function. */
public enum LabelRule {
    /** Never: every target must be available. */
    SERVING,
    /** When the label is new to the model, or already stood for that version: it never moves away from what serves. */
    FIRST_ASSIGNMENT,
    /** Always. */
    ANY;

    /**
     * Checks a model's new labels, all of them, before any is set. Shadows are not looked at: requests do without them.
     *
     * @param model the model's name
     * @param wanted its new labels
     * @param present its labels so far
     * @param available whether a version serves now
     * @throws ServingException FAILED_PRECONDITION for the first label, by name, with a target that is refused
     */
    public void check(String model, Map<String, Label> wanted, Map<String, Label> present, LongPredicate available) {
        if (this == ANY) {
            return;
        }
        new TreeMap<>(wanted).forEach((name, label) -> {
            for (Share share : label.targets()) {
                if (!available.test(share.version())
                        && !(this == FIRST_ASSIGNMENT && first(present.get(name), share))) {
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

    private static boolean first(@Nullable Label present, Share share) {
        return present == null || present.targets().stream().anyMatch(s -> s.version() == share.version());
    }
}
