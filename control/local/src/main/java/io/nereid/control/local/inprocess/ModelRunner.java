// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.inprocess;

import io.nereid.base.ServingException;
import io.nereid.control.core.ObservedState.Failure;
import io.nereid.control.core.Workload;
import io.nereid.control.core.component.NvidiaResources;
import io.nereid.control.gateway.upstream.RevisionTarget;
import io.nereid.control.local.workload.FailureMessages;
import io.nereid.control.local.workload.GpuGrants;
import io.nereid.control.local.workload.RevisionLog;
import io.nereid.control.local.workload.ServiceRouting;
import io.nereid.control.local.workload.WorkloadRunner;
import io.nereid.control.plane.loop.Backoff;
import io.nereid.control.plane.loop.EventLoop;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Runs a model, or a repository of models, in the engine. Replicas are model instances. At zero replicas the model is
 * unloaded and its memory released. Confined to the event loop thread.
 */
public final class ModelRunner implements WorkloadRunner {
    /** Time in which admitted requests reach the engine, before their model is unloaded. */
    private static final Duration TRANSIT_TIME = Duration.ofMillis(100);

    private final EventLoop loop;
    private final ModelDeployer deployer;
    private final GpuGrants gpus;
    private final Workload workload;
    private final List<Path> files;
    private final ServiceRouting.Activator activator;
    private final RevisionLog log;
    private final Runnable changed;
    private final String name;
    private final Backoff backoff = Backoff.ofRestarts();
    /** The specification, once it has been built. */
    private ManagedModelBuilder.@Nullable Result spec;

    /** The GPUs of the model while it is loaded; null without a limit of them. */
    private GpuGrants.@Nullable Grant grant;

    private boolean building;
    private int desired;
    private boolean deployed;
    private boolean registered;
    private boolean available;
    private boolean failing;
    private @Nullable Failure failure;
    private EventLoop.Timer retry = EventLoop.Timer.NONE;
    private EventLoop.Timer undeployment = EventLoop.Timer.NONE;
    private @Nullable Runnable ended;

    public ModelRunner(
            EventLoop loop,
            ModelDeployer deployer,
            GpuGrants gpus,
            Workload workload,
            List<Path> files,
            ServiceRouting.Activator activator,
            RevisionLog log,
            Runnable changed) {
        this.loop = loop;
        this.deployer = deployer;
        this.gpus = gpus;
        this.workload = workload;
        this.files = files;
        this.activator = activator;
        this.log = log;
        this.changed = changed;
        this.name = workload.namespace() + "/" + workload.revision();
    }

    @Override
    public int maxReplicas() {
        return Integer.MAX_VALUE;
    }

    @Override
    public void scale(int replicas) {
        int before = desired;
        desired = replicas;
        if (replicas == 0) {
            retry.cancel();
            failing = false;
            if (before > 0 || deployed) {
                activator.capacity(0);
                undeployment.cancel();
                undeployment = loop.after(TRANSIT_TIME, this::undeploy);
            }
        } else if (ended == null) {
            undeployment.cancel();
            deploy();
        }
        changed.run();
    }

    private void undeploy() {
        if (deployed) {
            deployed = false;
            available = false;
            log.add("the model is unloaded, its memory is released");
            deployer.undeploy(name);
        }
        engineChanged();
    }

    private void deploy() {
        ManagedModelBuilder.Result known = spec;
        if (known == null) {
            build();
            return;
        }
        if (!hasGpus()) {
            return;
        }
        if (!deployed) {
            log.add("the model is deployed as " + name + " from "
                    + known.model().directory());
        }
        deployed = true;
        registered = true;
        GpuGrants.Grant granted = grant;
        deployer.deploy(
                known.model().withInstances(desired).withGpus(granted == null ? List.of() : granted.ordinals()),
                this::engineChanged);
    }

    /** Takes the GPUs that the model needs, unless it has them; false when it cannot have them now. */
    private boolean hasGpus() {
        if (grant != null) {
            return true;
        }
        try {
            NvidiaResources needed = NvidiaResources.of(((Workload.Model) workload.form()).limits(), "the model");
            if (!needed.isEmpty()) {
                GpuGrants.Grant taken =
                        gpus.take(workload.namespace() + "/" + workload.service(), workload.revision(), needed);
                grant = taken;
                log.add("the model has the GPUs " + taken.visible());
            }
            return true;
        } catch (ServingException e) {
            fail(e.describe());
            return false;
        }
    }

    private void releaseGpus() {
        GpuGrants.Grant held = grant;
        if (held != null) {
            gpus.release(held);
            grant = null;
        }
    }

    /** Builds the specification on the pool, for it reads the model's directory; then deploys the model. */
    private void build() {
        if (building) {
            return;
        }
        building = true;
        List<String> warnings = new ArrayList<>();
        loop.supply(
                () -> ManagedModelBuilder.build(workload, (Workload.Model) workload.form(), files, warnings),
                (result, error) -> {
                    building = false;
                    if (result != null) {
                        spec = result;
                        warnings.forEach(w -> log.add("warning: " + w));
                        if (desired > 0 && ended == null) {
                            deploy();
                        }
                    } else {
                        fail(FailureMessages.text(error));
                    }
                    changed.run();
                });
    }

    /** Evaluates the model's state in the engine after a change. */
    private void engineChanged() {
        Runnable end = ended;
        if (end != null) {
            if (!deployed && deployer.isUnloaded(name)) {
                ended = null;
                deployer.forget(name);
                releaseGpus();
                end.run();
            }
            return;
        }
        if (!deployed) {
            if (desired == 0 && deployer.isUnloaded(name)) {
                releaseGpus();
            }
            return;
        }
        ManagedModelBuilder.Result known = spec;
        String reason = deployer.failure(name);
        if (deployer.available(name) && known != null) {
            if (!available) {
                available = true;
                retry.cancel();
                failing = false;
                failure = null;
                backoff.reset();
                List<String> names = deployer.names(name);
                boolean repository = !names.equals(List.of(name));
                activator.destination(new RevisionTarget.Models(name, repository, known.modelName()));
                log.add(repository ? "the models are ready: " + String.join(", ", names) : "the model is ready");
            }
        } else {
            available = false;
            if (reason != null && !failing) {
                fail(reason);
            }
        }
        changed.run();
    }

    private void fail(String reason) {
        failing = true;
        failure = new Failure(
                "ModelLoadFailed", reason, Instant.ofEpochMilli(loop.clock().millis()), null);
        Duration wait = backoff.next();
        log.add("the model cannot be loaded: " + reason + "; retried in " + wait.toSeconds() + " s");
        retry.cancel();
        retry = loop.after(wait, () -> {
            if (desired > 0 && ended == null) {
                deployer.undeploy(name);
                deployed = false;
                redeployWhenUnloaded();
            }
        });
    }

    /** Deploys the model again as soon as it has been unloaded completely. */
    private void redeployWhenUnloaded() {
        if (desired == 0 || ended != null) {
            return;
        }
        if (deployer.isUnloaded(name)) {
            failing = false;
            deploy();
        } else {
            retry = loop.after(TRANSIT_TIME, this::redeployWhenUnloaded);
        }
    }

    @Override
    public int ready() {
        return available && deployed ? desired : 0;
    }

    @Override
    public @Nullable Failure failure() {
        return failure;
    }

    @Override
    public boolean failing() {
        return failing || (failure != null && !available);
    }

    @Override
    public void end(Runnable then) {
        retry.cancel();
        undeployment.cancel();
        desired = 0;
        if (!registered) {
            then.run();
            return;
        }
        ended = then;
        undeploy();
    }
}
