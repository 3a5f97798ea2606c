// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import io.nereid.base.ServingException;
import io.nereid.control.api.CommandLineArguments;
import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.InferenceService.BuiltInExplainer;
import io.nereid.control.api.InferenceService.ExplainerSpec;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Decides which explainers are built into Nereid, wherever they run: those of {@code spec.explainer.nereid}, and containers
 * with the image {@code nereid/explainer} and no command of their own. Stateless.
 */
public final class BuiltInExplainers {
    private static final String IMAGE = "nereid/explainer";

    private BuiltInExplainers() {}

    /**
     * The built-in explainer of a component; null for another one. The files of a container are those of its plan.
     *
     * @throws ServingException INVALID_ARGUMENT for a container without a method
     */
    public static @Nullable BuiltInExplainer of(ComponentPlan plan, ExplainerSpec spec) {
        if (spec.builtIn() != null) {
            return spec.builtIn();
        }
        if (spec.art() != null || plan.pod().containers().isEmpty()) {
            return null;
        }
        Container main = main(plan.pod().containers());
        String image = main.image();
        if (image == null || !main.command().isEmpty() || !ModelServerImages.is(image, IMAGE)) {
            return null;
        }
        Map<String, String> settings = new LinkedHashMap<>(CommandLineArguments.of(main.args()));
        String method = settings.remove("method");
        if (method == null) {
            throw ServingException.invalidArgument("spec.explainer.containers[" + main.name()
                    + "].args: --method is missing; expected one such as shap");
        }
        return new BuiltInExplainer(method, null, Collections.unmodifiableMap(settings));
    }

    /** The container that serves a component: the main one by its name, else the first. */
    public static Container main(List<Container> containers) {
        for (Container one : containers) {
            if (one.name().equals(InferenceService.MAIN_CONTAINER)) {
                return one;
            }
        }
        return containers.get(0);
    }
}
