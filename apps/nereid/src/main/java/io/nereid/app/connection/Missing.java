// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.connection;

/**
 * What is said when nothing listens at an address. Immutable.
 *
 * @param what what was expected there, such as {@code server}
 * @param remedy how to start one, or to name another
 */
public record Missing(String what, String remedy) {
    /** A server of models. */
    public static final Missing SERVER = new Missing("server", "start one with: nereid serve DIR; or set --url");

    /** A control API. */
    public static final Missing CONTROL_API = new Missing(
            "control API", "start a server with: nereid serve --control; or set --server URL or NEREID_CONTROL");
}
