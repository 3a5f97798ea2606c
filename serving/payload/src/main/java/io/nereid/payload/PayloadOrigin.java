// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import java.util.Map;

/**
 * What an event says of where it comes from. Immutable.
 *
 * @param namespace the service's
 * @param service the InferenceService's name
 * @param component {@code predictor}, {@code transformer} or {@code explainer}
 * @param revision the name of what runs; tells the figures of two revisions apart
 * @param endpoint which endpoint of the service it is; empty for the only one
 * @param source the event's source
 * @param annotations the service's, of which the logger's specification selects some
 */
public record PayloadOrigin(
        String namespace,
        String service,
        String component,
        String revision,
        String endpoint,
        String source,
        Map<String, String> annotations) {}
