// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.upgrade;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.operator.objects.ServiceObjects;
import org.jspecify.annotations.Nullable;

/**
 * What a Deployment says of how its pod template was planned: the annotation {@value #ANNOTATION}, {@code FORM.INPUTS}.
 * Immutable.
 *
 * @param form the form of the operator, see {@link TemplateInputs#form}
 * @param inputs what the operator was given, see {@link TemplateInputs#inputs}
 * @param from the form of the template that was replaced by an upgrade; empty for none
 */
record TemplateStamp(String form, String inputs, String from) {
    static final String ANNOTATION = "nereid.io/template";
    static final String FROM = ServiceObjects.UPGRADED_FROM;

    /** The form of a template that was planned before Deployments had this annotation. */
    static final String UNKNOWN = "unknown";

    /** The beginning of the form of a template that KServe's controller has written, before the operator's own. */
    private static final String KSERVE = "kserve-";

    /** The stamp of a Deployment that keeps the template of KServe. */
    static TemplateStamp ofKserve(TemplateRollout.Planned now) {
        return new TemplateStamp(KSERVE + now.form(), now.inputs(), "");
    }

    /** Whether the template is one of KServe. */
    boolean isOfKserve() {
        return form.startsWith(KSERVE);
    }

    /** The stamp of a stored Deployment; null when it has none. */
    static @Nullable TemplateStamp of(ObjectNode deployment) {
        JsonNode annotations = deployment.path("metadata").path("annotations");
        String text = annotations.path(ANNOTATION).asText("");
        int dot = text.indexOf('.');
        return dot < 0
                ? null
                : new TemplateStamp(
                        text.substring(0, dot),
                        text.substring(dot + 1),
                        annotations.path(FROM).asText(""));
    }

    /** Writes the stamp on a Deployment that is to be applied; its pods do not have it. */
    void on(ObjectNode deployment) {
        ObjectNode annotations = deployment.withObjectProperty("metadata").withObjectProperty("annotations");
        annotations.put(ANNOTATION, form + "." + inputs);
        if (!from.isEmpty()) {
            annotations.put(FROM, from);
        }
    }
}
