// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import io.nereid.base.ServingException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Whose server runs the models of services that name no runtime. The annotation {@value #ANNOTATION} of a service, else
 * that of its namespace, else {@code nereid.servingEngine} of {@code inferenceservice-config} chooses it; a runtime with
 * the annotation belongs to the engine. A runtime that a service names is used whatever its engine.
 *
 * <pre>{@code
 * kubectl annotate namespace team-a nereid.io/serving-engine=nereid
 * }</pre>
 */
public enum ServingEngine {
    /** The servers of KServe's runtimes, and of all others without the annotation. */
    KSERVE("kserve"),
    /** The engine of Nereid. */
    NEREID("nereid");

    /** The annotation of services, namespaces and runtimes. */
    public static final String ANNOTATION = "nereid.io/serving-engine";

    private final String text;

    ServingEngine(String text) {
        this.text = text;
    }

    /** The value in annotations and settings. */
    public String text() {
        return text;
    }

    /** The engine of this value; null for an unknown one. */
    public static @Nullable ServingEngine of(String value) {
        for (ServingEngine engine : values()) {
            if (engine.text.equals(value)) {
                return engine;
            }
        }
        return null;
    }

    /**
     * The engine that the annotation of a service or a namespace chooses; null without the annotation.
     *
     * @throws ServingException INVALID_ARGUMENT for an unknown value
     */
    public static @Nullable ServingEngine chosenBy(ObjectMeta metadata) {
        String value = metadata.annotation(ANNOTATION);
        if (value == null) {
            return null;
        }
        ServingEngine engine = of(value);
        if (engine == null) {
            throw ServingException.invalidArgument("metadata.annotations." + ANNOTATION + ": " + unknown(value));
        }
        return engine;
    }

    /** What is wrong with a value that is none of an engine. */
    public static String unknown(String value) {
        return ValidationErrors.unknownValue(value, List.of(NEREID.text, KSERVE.text));
    }
}
