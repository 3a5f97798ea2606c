// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.inprocess;

import io.nereid.control.core.ObservedState.Failure;
import io.nereid.control.gateway.upstream.Destination;
import io.nereid.control.local.spi.InProcessComponents;
import io.nereid.control.local.workload.EventLoop;
import io.nereid.control.local.workload.FailureMessages;
import io.nereid.control.local.workload.RevisionLog;
import io.nereid.control.local.workload.ServiceRouting;
import io.nereid.control.local.workload.WorkloadRunner;
import java.time.Instant;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Runs an explainer or a Java transformer inside the server process. One instance serves all requests, whatever the
 * number of replicas. Confined to the event loop thread.
 */
public final class InProcessRunner implements WorkloadRunner {
    private final EventLoop loop;
    private final String what;
    private final Supplier<InProcessComponents.Running> maker;
    private final ServiceRouting.Gate gate;
    private final RevisionLog log;
    private final Runnable changed;
    private InProcessComponents.@Nullable Running running;
    private int desired;
    private boolean making;
    private @Nullable Failure failure;

    /**
     * Creates a runner that starts nothing until it is scaled.
     *
     * @param what the kind of component in log lines, such as {@code explainer}
     * @param maker creates the component, on a thread that may block
     */
    public InProcessRunner(
            EventLoop loop,
            String what,
            Supplier<InProcessComponents.Running> maker,
            ServiceRouting.Gate gate,
            RevisionLog log,
            Runnable changed) {
        this.loop = loop;
        this.what = what;
        this.maker = maker;
        this.gate = gate;
        this.log = log;
        this.changed = changed;
    }

    @Override
    public int most() {
        return 1;
    }

    @Override
    public void scale(int replicas) {
        desired = Math.min(1, replicas);
        if (desired == 0) {
            close();
        } else if (running == null && !making) {
            making = true;
            loop.io(this::make);
        }
        changed.run();
    }

    private void make() {
        InProcessComponents.Running made = null;
        RuntimeException error = null;
        try {
            made = maker.get();
        } catch (RuntimeException e) {
            error = e;
        }
        InProcessComponents.Running result = made;
        RuntimeException problem = error;
        loop.execute(() -> {
            making = false;
            if (result != null && desired == 0) {
                result.close();
            } else if (result != null) {
                running = result;
                failure = null;
                gate.destination(new Destination.Handler(result.codecs()));
                log.add("the " + what + " is ready");
            } else {
                String reason = FailureMessages.text(problem);
                failure = new Failure(
                        "ModelLoadFailed",
                        reason,
                        Instant.ofEpochMilli(loop.clock().millis()),
                        null);
                log.add("the " + what + " cannot be created: " + reason);
            }
            changed.run();
        });
    }

    private void close() {
        InProcessComponents.Running now = running;
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
