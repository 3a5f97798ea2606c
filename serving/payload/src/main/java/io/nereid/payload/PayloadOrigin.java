// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import java.util.Map;

/**
 * The service that events come from. Immutable.
 *
 * @param namespace the service's namespace
 * @param service the InferenceService's name
 * @param component {@code predictor}, {@code transformer} or {@code explainer}
 * @param revision the revision's name; a label of the metrics
 * @param endpoint which endpoint of the service it is; empty for the only one
 * @param source the CloudEvent's source
 * @param annotations the service's annotations, of which the logger's specification selects some
 */
public record PayloadOrigin(
        String namespace,
        String service,
        String component,
        String revision,
        String endpoint,
        String source,
        Map<String, String> annotations) {}
