// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.control.core.Workload.Component;
import java.time.Instant;

/**
 * One state of a component's specification, kept so that traffic can go back to it. Immutable.
 *
 * @param component the component
 * @param number counts up from 1 for each component
 * @param name such as {@code iris-predictor-00001}
 * @param fingerprint of all that makes a difference to what runs
 * @param workload what runs, as a tree that {@link Planner} reads
 * @param created when it was first planned
 */
public record Revision(
        Component component, int number, String name, String fingerprint, JsonNode workload, Instant created) {}
