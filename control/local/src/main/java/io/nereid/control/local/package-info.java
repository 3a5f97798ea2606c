// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The local control plane: reconciles InferenceServices on this machine, without a cluster. It plans each service and
 * runs its revisions as models in the engine, components of the server process or child processes, with routes and
 * autoscaling.
 *
 * <p>The path of an InferenceService from the store to a loaded model:
 *
 * <ol>
 *   <li>{@link ServiceController} watches the store, plans a changed service with the pure {@code Planner}, and applies
 *       the plan.
 *   <li>{@link LocalInfrastructure} moves to its event loop thread, and starts, updates or ends the revisions of the
 *       plan.
 *   <li>{@link RevisionController} fetches the artifacts of its revision, and sets the number of replicas that
 *       {@link RevisionScaler} computes. {@link WorkloadRunners} creates its runner by the form of the workload.
 *   <li>{@code ModelRunner} builds the model's specification ({@code ManagedModelBuilder}), and deploys it again after
 *       a failure.
 *   <li>{@code ModelDeployer} joins the models of all revisions into one list, and tracks the state of each model.
 *   <li>{@code ManagedModels}, a source of the engine, reads the models' directories and emits aspired versions.
 * </ol>
 *
 * <p>The states of the versions return through {@link LocalInfrastructure#modelState}: the deployer notifies the
 * runner, which makes the model the destination of the revision's requests and notifies its controller.
 *
 * <p>The other forms differ in the runner only: {@code ProcessRunner} starts a {@code ContainerProcess} for each
 * container of a replica, and {@code InProcessRunner} creates an explainer or a transformer from a jar.
 */
@NullMarked
package io.nereid.control.local;

import org.jspecify.annotations.NullMarked;
