// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.client;

import io.nereid.client.NereidClient;
import io.nereid.client.infer.InferenceException;

/**
 * What the health indicators show of the server of a client; Spring Boot 3 and 4 have types of their own for it. Immutable.
 *
 * @param up whether the server is ready; with V1, which does not have readiness, whether it is live
 * @param state {@code ready}, {@code not ready}, or why the server could not be asked
 */
public record ServerHealth(boolean up, String state) {
    /** Asks the server, within the timeout and with the retries of the client. */
    public static ServerHealth of(NereidClient client) {
        try {
            return of(client.isReady());
        } catch (InferenceException e) {
            if (e.code() != InferenceException.Code.UNIMPLEMENTED) {
                return new ServerHealth(false, e.code() + ": " + e.getMessage());
            }
        }
        try {
            return of(client.isLive());
        } catch (InferenceException e) {
            return new ServerHealth(false, e.code() + ": " + e.getMessage());
        }
    }

    private static ServerHealth of(boolean ready) {
        return new ServerHealth(ready, ready ? "ready" : "not ready");
    }
}
