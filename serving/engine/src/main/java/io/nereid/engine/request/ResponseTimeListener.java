// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.request;

/**
 * A sink or a job that needs the latencies of a successful request. Called once, before the last response, on the same
 * thread.
 */
public interface ResponseTimeListener {
    /** Reports the nanoseconds spent on gathering inputs, running, and splitting outputs. */
    void onResponseTimes(long inputNanos, long inferNanos, long outputNanos);
}
