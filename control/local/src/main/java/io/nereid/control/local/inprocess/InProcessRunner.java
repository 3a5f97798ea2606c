// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.inprocess;

import io.nereid.control.core.ObservedState.Failure;
import io.nereid.control.gateway.upstream.RevisionTarget;
import io.nereid.control.local.spi.InProcessComponents;
import io.nereid.control.local.workload.FailureMessages;
import io.nereid.control.local.workload.RevisionLog;
import io.nereid.control.local.workload.ServiceRouting;
import io.nereid.control.local.workload.WorkloadRunner;
import io.nereid.control.plane.loop.EventLoop;
import java.time.Instant;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Runs an explainer or a Java transformer inside the server process. One instance serves all requests, whatever the
 * number of replicas. Confined to the event loop thread.
 */
public final class InProcessRunner implements WorkloadRunner {
    private final EventLoop loop;
    private final String kind;
    private final Supplier<InProcessComponents.RunningComponent> factory;
    private final ServiceRouting.Activator activator;
    private final RevisionLog log;
    private final Runnable changed;
    private InProcessComponents.@Nullable RunningComponent running;
    private int desired;
    private boolean creating;
    private @Nullable Failure failure;

    /**
     * Creates a runner that starts nothing until it is scaled.
     *
     * @param kind the kind of component in log lines, such as {@code explainer}
     * @param factory creates the component, on a thread that may block
     */
    public InProcessRunner(
            EventLoop loop,
            String kind,
            Supplier<InProcessComponents.RunningComponent> factory,
            ServiceRouting.Activator activator,
            RevisionLog log,
            Runnable changed) {
        this.loop = loop;
        this.kind = kind;
        this.factory = factory;
        this.activator = activator;
        this.log = log;
        this.changed = changed;
    }

    @Override
    public int maxReplicas() {
        return 1;
    }

    @Override
    public void scale(int replicas) {
        desired = Math.min(1, replicas);
        if (desired == 0) {
            close();
        } else if (running == null && !creating) {
            creating = true;
            loop.supply(factory, this::created);
        }
        changed.run();
    }

    private void created(InProcessComponents.@Nullable RunningComponent component, @Nullable RuntimeException error) {
        creating = false;
        if (component != null && desired == 0) {
            component.close();
        } else if (component != null) {
            running = component;
            failure = null;
            activator.destination(new RevisionTarget.Handler(component.codecs()));
            log.add("the " + kind + " is ready");
        } else {
            String reason = FailureMessages.text(error);
            failure = new Failure(
                    "ModelLoadFailed", reason, Instant.ofEpochMilli(loop.clock().millis()), null);
            log.add("the " + kind + " cannot be created: " + reason);
        }
        changed.run();
    }

    private void close() {
        InProcessComponents.RunningComponent now = running;
        running = null;
        if (now != null) {
            now.close();
        }
    }

    @Override
    public int ready() {
        return running == null ? 0 : 1;
    }

    @Override
    public @Nullable Failure failure() {
        return failure;
    }

    @Override
    public boolean failing() {
        return failure != null;
    }

    @Override
    public void end(Runnable ended) {
        desired = 0;
        close();
        ended.run();
    }
}
