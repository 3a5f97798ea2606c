// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelControl;
import io.nereid.transport.api.ProtocolCodec;
import java.util.List;

/** Builds the protocols that one revision speaks. Called once for each revision, at its first request, on any thread. */
@FunctionalInterface
public interface SiteCodecs {
    /**
     * The protocols around two doors.
     *
     * @param engine inference, under the names that clients use; answers for this revision's models alone
     * @param control likewise
     */
    List<ProtocolCodec> build(InferenceEngine engine, ModelControl control);
}
