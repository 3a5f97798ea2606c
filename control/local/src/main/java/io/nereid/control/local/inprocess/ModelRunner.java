// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.inprocess;

import io.nereid.control.core.ObservedState.Failure;
import io.nereid.control.core.Workload;
import io.nereid.control.gateway.upstream.Destination;
import io.nereid.control.local.workload.Backoff;
import io.nereid.control.local.workload.EventLoop;
import io.nereid.control.local.workload.FailureMessages;
import io.nereid.control.local.workload.RevisionLog;
import io.nereid.control.local.workload.ServiceRouting;
import io.nereid.control.local.workload.WorkloadRunner;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Runs a model, or a repository of models, in the engine. Replicas are model instances. At zero replicas the model is
 * unloaded and its memory released. Confined to the event loop thread.
 */
public final class ModelRunner implements WorkloadRunner {
    /** Time in which requests that have passed the gate reach the engine, before their model is unloaded. */
    private static final Duration PASSING = Duration.ofMillis(100);

    private final EventLoop loop;
    private final ModelDeployer placer;
    private final Workload workload;
    private final List<Path> files;
    private final ServiceRouting.Gate gate;
    private final RevisionLog log;
    private final Runnable changed;
    private final String name;
    private final Backoff backoff = Backoff.ofRestarts();
    private @Nullable EngineModelSpec form;
    private boolean reading;
    private int desired;
    private boolean placed;
    private boolean registered;
    private boolean available;
    private boolean failing;
    private @Nullable Failure failure;
    private EventLoop.Timer retry = EventLoop.Timer.NONE;
    private EventLoop.Timer withdrawal = EventLoop.Timer.NONE;
    private @Nullable Runnable ended;

    public ModelRunner(
            EventLoop loop,
            ModelDeployer placer,
            Workload workload,
            List<Path> files,
            ServiceRouting.Gate gate,
            RevisionLog log,
            Runnable changed) {
        this.loop = loop;
        this.placer = placer;
        this.workload = workload;
        this.files = files;
        this.gate = gate;
        this.log = log;
        this.changed = changed;
        this.name = workload.namespace() + "/" + workload.revision();
    }

    @Override
    public int most() {
        return Integer.MAX_VALUE;
    }

    @Override
    public void scale(int replicas) {
        int before = desired;
        desired = replicas;
        if (replicas == 0) {
            retry.cancel();
            failing = false;
            if (before > 0 || placed) {
                gate.capacity(0);
                withdrawal.cancel();
                withdrawal = loop.after(PASSING, this::withdraw);
            }
        } else if (ended == null) {
            withdrawal.cancel();
            place();
        }
        changed.run();
    }

    private void withdraw() {
        if (placed) {
            placed = false;
            available = false;
            log.add("the model is unloaded, its memory is released");
            placer.withdraw(name);
        }
        engineChanged();
    }

    private void place() {
        EngineModelSpec known = form;
        if (known == null) {
            read();
            return;
        }
        if (!placed) {
            log.add("the model is deployed as " + name + " from "
                    + known.placed().directory());
        }
        placed = true;
        registered = true;
        placer.place(known.placed().withInstances(desired), this::engineChanged);
    }

    private void read() {
        if (reading) {
            return;
        }
        reading = true;
        loop.io(() -> {
            EngineModelSpec read = null;
            RuntimeException error = null;
            try {
                read = EngineModelSpec.of(workload, (Workload.Model) workload.form(), files);
            } catch (RuntimeException e) {
                error = e;
            }
            EngineModelSpec result = read;
            RuntimeException problem = error;
            loop.execute(() -> {
                reading = false;
                if (result != null) {
                    form = result;
                    result.warnings().forEach(w -> log.add("warning: " + w));
                    if (desired > 0 && ended == null) {
                        place();
                    }
                } else {
                    fail(FailureMessages.text(problem));
                }
                changed.run();
            });
        });
    }

    /** Evaluates the model's state in the engine after a change. */
    private void engineChanged() {
        Runnable end = ended;
        if (end != null) {
            if (!placed && placer.gone(name)) {
                ended = null;
                placer.forget(name);
                end.run();
            }
            return;
        }
        if (!placed) {
            return;
        }
        EngineModelSpec known = form;
        String reason = placer.failure(name);
        if (placer.available(name) && known != null) {
            if (!available) {
                available = true;
                retry.cancel();
                failing = false;
                failure = null;
                backoff.reset();
                List<String> names = placer.names(name);
                boolean repository = !names.equals(List.of(name));
                gate.destination(new Destination.Models(name, repository, known.modelName()));
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
                placer.withdraw(name);
                placed = false;
                awaitGone();
            }
        });
    }

    /** Deploys the model again as soon as it has been unloaded completely. */
    private void awaitGone() {
        if (desired == 0 || ended != null) {
            return;
        }
        if (placer.gone(name)) {
            failing = false;
            place();
        } else {
            retry = loop.after(PASSING, this::awaitGone);
        }
    }

    @Override
    public int ready() {
        return available && placed ? desired : 0;
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
        withdrawal.cancel();
        desired = 0;
        if (!registered) {
            then.run();
            return;
        }
        ended = then;
        withdraw();
    }
}
