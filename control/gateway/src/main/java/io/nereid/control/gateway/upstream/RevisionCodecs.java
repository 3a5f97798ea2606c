// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.upstream;

import io.nereid.spi.InferenceEngine;
import io.nereid.spi.management.ModelControl;
import io.nereid.transport.api.ProtocolCodec;
import java.util.List;

/**
 * Builds the protocols that one revision serves. Called once for each revision, at its first request, on any thread.
 */
@FunctionalInterface
public interface RevisionCodecs {
    /**
     * Builds the protocols around an engine and its control.
     *
     * @param engine inference with this revision's models only, under the names that clients use
     * @param control the control of the same models
     */
    List<ProtocolCodec> build(InferenceEngine engine, ModelControl control);
}
