// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.request;

/**
 * A sink, or a job, that wants to be told how long a successful request took. Called once, before its last answer, on that
 * thread.
 */
public interface ResponseTimeListener {
    /** Nanoseconds spent gathering inputs, running, and handing out outputs. */
    void took(long inputNanos, long inferNanos, long outputNanos);
}
