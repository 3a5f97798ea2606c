// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.knative;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.core.Plan;
import java.util.List;

/**
 * What the cluster shall have of a service that Knative Serving runs. The whole desired set: an object that the service
 * owns and that is not in it goes. Immutable as long as the trees are not modified.
 *
 * @param objects the objects to apply; one with a {@code resourceVersion} is there and stays as it is
 * @param status the status of the service
 * @param events events to record once
 */
public record KnativePlan(List<ObjectNode> objects, ObjectNode status, List<Plan.Event> events) {}
