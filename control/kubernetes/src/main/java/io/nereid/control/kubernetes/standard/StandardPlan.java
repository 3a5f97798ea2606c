// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.standard;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.core.Plan;
import java.util.List;

/**
 * What the cluster shall have of a service in Standard mode. The whole desired set: an object that the service owns and
 * that is not in it goes. Immutable as long as the trees are not modified.
 *
 * @param objects the objects, with what pods need beside the server in the Deployments' templates; these are applied
 * @param bare the same objects with the templates as KServe stores them, before its pod webhook
 * @param status the status of the service
 * @param events events to record once
 */
public record StandardPlan(
        List<ObjectNode> objects, List<ObjectNode> bare, ObjectNode status, List<Plan.Event> events) {}
