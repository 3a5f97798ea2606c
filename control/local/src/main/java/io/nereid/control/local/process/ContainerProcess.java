// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.process;

import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.base.Units;
import io.nereid.control.api.Quantity;
import io.nereid.control.core.ObservedState.Failure;
import io.nereid.control.core.Workload.ProcessContainer;
import io.nereid.control.local.workload.FailureMessages;
import io.nereid.control.local.workload.RevisionLog;
import io.nereid.control.plane.loop.Backoff;
import io.nereid.control.plane.loop.EventLoop;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * One container as a child process: starts it, probes it, restarts it when it exits, and stops it. Confined to the
 * event loop thread.
 *
 * <p>The first restart follows at once, the next ones after 10 s, doubling to 5 min. After ten minutes without an exit
 * the back-off starts over, as Kubernetes does it.
 */
final class ContainerProcess {
    private static final Duration LONG_RUN = Duration.ofMinutes(10);
    /**
     * Readiness probe interval before the process is ready for the first time, so that a fast start is noticed soon.
     */
    private static final Duration STARTING_INTERVAL = Duration.ofMillis(250);

    private static final Duration READY_INTERVAL = Duration.ofSeconds(10);
    private static final Duration MEMORY_CHECK_INTERVAL = Duration.ofSeconds(5);
    private static final int OUT_OF_MEMORY = 137;
    private static final String NOT_READY = "RuntimeUnhealthy";

    private final EventLoop loop;
    private final ProcessSupervisor supervisor;
    private final String name;
    private final ProcessContainer container;
    private final ProcessSpec spec;
    private final Path directory;
    private final Duration grace;
    private final RevisionLog log;
    private final String prefix;
    private final Runnable changed;
    private final Backoff backoff = Backoff.ofRestarts();
    private final long memoryLimit;
    private final double cpuLimit;
    private @Nullable ProcessRun run;
    private int exits;
    private boolean waiting;
    private boolean stopping;
    private boolean starting;
    private boolean everReady;
    private @Nullable Failure failure;
    private EventLoop.Timer timer = EventLoop.Timer.NONE;
    private @Nullable Runnable ended;

    /** One run of the process, from start to exit. Confined to the event loop thread, except for {@link #lastLine}. */
    private static final class ProcessRun {
        final ProcessSupervisor.Started started;
        final long since;
        boolean ready;
        boolean over;
        int successes;
        int failures;

        @Nullable String killedFor;

        boolean outOfMemory;
        volatile String lastLine = "";

        ProcessRun(ProcessSupervisor.Started started, long since) {
            this.started = started;
            this.since = since;
        }
    }

    /**
     * Creates a container process without starting it.
     *
     * @param name unique among the running processes
     * @param directory the working directory, unless the specification names one
     * @param grace time between the request to end and the kill
     * @param prefix prefix of the process's lines in the log
     */
    ContainerProcess(
            EventLoop loop,
            ProcessSupervisor supervisor,
            String name,
            ProcessContainer container,
            ProcessSpec spec,
            Path directory,
            Duration grace,
            RevisionLog log,
            String prefix,
            Runnable changed) {
        this.loop = loop;
        this.supervisor = supervisor;
        this.name = name;
        this.container = container;
        this.spec = spec;
        Path own = spec.workingDirectory();
        this.directory = own == null ? directory : own;
        this.grace = grace;
        this.log = log;
        this.prefix = prefix;
        this.changed = changed;
        Quantity memory = limit(container, "memory");
        this.memoryLimit = memory == null ? 0 : memory.units();
        Quantity cpu = limit(container, "cpu");
        this.cpuLimit = cpu == null ? 0 : cpu.amount();
    }

    /** Returns a resource limit; null without one. Admission rejects invalid quantities, so they are ignored here. */
    private static @Nullable Quantity limit(ProcessContainer container, String resource) {
        String text = container.resources().path("limits").path(resource).asText("");
        try {
            return text.isEmpty() ? null : Quantity.parse(text);
        } catch (ServingException e) {
            return null;
        }
    }

    boolean ready() {
        ProcessRun now = run;
        return now != null && now.ready && !stopping;
    }

    @Nullable Failure failure() {
        return failure;
    }

    /** Whether the process exited or could not be started, and the restart is delayed. */
    boolean failing() {
        return waiting;
    }

    ProcessSpec spec() {
        return spec;
    }

    void start() {
        if (stopping || starting) {
            return;
        }
        waiting = false;
        starting = true;
        loop.io(() -> {
            ProcessSupervisor.Started started = null;
            RuntimeException error = null;
            try {
                started = supervisor.start(name, spec, directory, memoryLimit, cpuLimit);
            } catch (RuntimeException e) {
                error = e;
            }
            ProcessSupervisor.Started result = started;
            RuntimeException problem = error;
            if (result != null) {
                ProcessRun processRun = new ProcessRun(result, loop.clock().nanos());
                Threads.named("nereid-output").newThread(() -> copy(processRun)).start();
                loop.execute(() -> started(processRun));
                var unused = result.process()
                        .onExit()
                        .thenRun(() -> loop.io(() -> {
                            supervisor.sweep(result);
                            loop.execute(() -> exited(processRun));
                        }));
            } else {
                loop.execute(() -> notStarted(FailureMessages.text(problem)));
            }
        });
    }

    private void copy(ProcessRun processRun) {
        try (BufferedReader reader = new BufferedReader(
                new InputStreamReader(processRun.started.process().getInputStream(), StandardCharsets.UTF_8))) {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                if (!line.isBlank()) {
                    processRun.lastLine = line;
                }
                log.add(prefix + line);
            }
        } catch (IOException e) {
            // The pipe of a killed process breaks, which ends its output.
        }
    }

    private void notStarted(String reason) {
        starting = false;
        log.add(prefix + "not started: " + reason);
        failure = failed("ModelLoadFailed", reason, null);
        if (stopping) {
            finish();
            return;
        }
        waiting = true;
        timer = loop.after(backoff.next(), this::start);
        changed.run();
    }

    private void started(ProcessRun processRun) {
        starting = false;
        // The process can exit before this task runs; exited(processRun) has handled it then.
        if (processRun.over) {
            return;
        }
        run = processRun;
        log.add(prefix + "started as process " + processRun.started.process().pid() + ": "
                + String.join(" ", spec.command()));
        // Without cgroups, memory is polled and the process is killed over its limit; CPU limits are not enforced.
        if (memoryLimit > 0 && !supervisor.limits()) {
            watch(processRun);
        }
        if (cpuLimit > 0 && !supervisor.limits() && exits == 0) {
            log.add(prefix + "warning: the limit of " + cpuLimit
                    + " CPUs is not enforced: this server may not create control groups");
        }
        if (stopping) {
            terminate(processRun);
            return;
        }
        if (container.startupProbe() != null && !container.startupProbe().isEmpty()) {
            Probe probe = Probe.of(container.startupProbe());
            EventLoop.Timer unused = loop.after(probe.initialDelay(), () -> startup(processRun, probe));
        } else {
            startProbes(processRun);
        }
        changed.run();
    }

    // ---- probes: each runs on the pool, and its result is applied on the event loop ----

    private boolean current(ProcessRun processRun) {
        return run == processRun && !processRun.over && !stopping;
    }

    private void probe(ProcessRun processRun, Probe probe, java.util.function.Consumer<@Nullable String> then) {
        if (!current(processRun)) {
            return;
        }
        loop.io(() -> {
            String wrong = probe.ask(spec, container.ports());
            loop.execute(() -> {
                if (current(processRun)) {
                    then.accept(wrong);
                }
            });
        });
    }

    private void startup(ProcessRun processRun, Probe probe) {
        probe(processRun, probe, wrong -> {
            processRun.failures = wrong == null ? 0 : processRun.failures + 1;
            if (wrong == null) {
                startProbes(processRun);
            } else if (processRun.failures >= probe.failures()) {
                kill(processRun, "startup " + wrong);
            } else {
                EventLoop.Timer unused = loop.after(probe.period(), () -> startup(processRun, probe));
            }
        });
    }

    private void startProbes(ProcessRun processRun) {
        processRun.failures = 0;
        Probe readiness = Probe.of(container.readinessProbe());
        EventLoop.Timer first = loop.after(readiness.initialDelay(), () -> readiness(processRun, readiness));
        if (container.livenessProbe() != null && !container.livenessProbe().isEmpty()) {
            Probe liveness = Probe.of(container.livenessProbe());
            int[] failures = new int[1];
            first = loop.after(liveness.initialDelay(), () -> liveness(processRun, liveness, failures));
        }
        if (first == EventLoop.Timer.NONE) {
            log.add(prefix + "the server is shutting down");
        }
    }

    private void readiness(ProcessRun processRun, Probe probe) {
        probe(processRun, probe, wrong -> {
            boolean before = processRun.ready;
            if (wrong == null) {
                processRun.failures = 0;
                processRun.successes++;
                if (processRun.successes >= probe.successes()) {
                    processRun.ready = true;
                }
            } else {
                processRun.successes = 0;
                processRun.failures++;
                if (processRun.failures >= probe.failures()) {
                    processRun.ready = false;
                }
            }
            if (before != processRun.ready) {
                log.add(prefix + (processRun.ready ? "ready" : "not ready any more: " + wrong));
                if (processRun.ready) {
                    everReady = true;
                    failure = null;
                } else {
                    failure = failed(NOT_READY, String.valueOf(wrong), null);
                }
                changed.run();
            }
            // Not yet ready: probe often. The default probe (a TCP connection) of a ready process is slowed down, for
            // it only repeats what every request shows.
            Duration next = processRun.ready
                    ? (probe.spec().isMissingNode() ? READY_INTERVAL : probe.period())
                    : probe.spec().has("exec") || before || probe.period().compareTo(STARTING_INTERVAL) < 0
                            ? probe.period()
                            : STARTING_INTERVAL;
            EventLoop.Timer unused = loop.after(next, () -> readiness(processRun, probe));
        });
    }

    private void liveness(ProcessRun processRun, Probe probe, int[] failures) {
        probe(processRun, probe, wrong -> {
            failures[0] = wrong == null ? 0 : failures[0] + 1;
            if (failures[0] >= probe.failures()) {
                kill(processRun, "liveness " + wrong);
            } else {
                EventLoop.Timer unused = loop.after(probe.period(), () -> liveness(processRun, probe, failures));
            }
        });
    }

    private void watch(ProcessRun processRun) {
        EventLoop.Timer unused = loop.after(MEMORY_CHECK_INTERVAL, () -> {
            if (current(processRun)) {
                loop.io(() -> {
                    long held = ProcessSupervisor.residentBytes(processRun.started.process());
                    loop.execute(() -> {
                        if (current(processRun) && held > memoryLimit) {
                            processRun.outOfMemory = true;
                            kill(
                                    processRun,
                                    "it used " + Units.formatBytes(held) + " of memory, its limit is "
                                            + Units.formatBytes(memoryLimit) + " (OOMKilled)");
                        } else if (current(processRun)) {
                            watch(processRun);
                        }
                    });
                });
            }
        });
    }

    private void kill(ProcessRun processRun, String why) {
        processRun.killedFor = why;
        log.add(prefix + "is stopped: " + why);
        terminate(processRun);
    }

    // ---- the end ----

    private void exited(ProcessRun processRun) {
        processRun.over = true;
        if (run != processRun && run != null) {
            return;
        }
        run = null;
        starting = false;
        int code = processRun.started.process().exitValue();
        if (stopping) {
            log.add(prefix + "exited with " + code);
            finish();
            return;
        }
        if (loop.clock().nanos() - processRun.since >= LONG_RUN.toNanos()) {
            exits = 0;
            backoff.reset();
        }
        exits++;
        String killedFor = processRun.killedFor;
        String last = processRun.lastLine.isEmpty() ? "without output" : processRun.lastLine;
        failure = failed(
                killedFor == null && !everReady ? "ModelLoadFailed" : NOT_READY,
                "container '" + container.name() + "' exited with " + code + ": "
                        + (killedFor == null ? last : killedFor),
                processRun.outOfMemory ? Integer.valueOf(OUT_OF_MEMORY) : Integer.valueOf(code));
        if (exits == 1) {
            log.add(prefix + "exited with " + code + ", is restarted");
            start();
        } else {
            Duration wait = backoff.next();
            log.add(prefix + "exited with " + code + " (exit " + exits + "), is restarted in " + wait.toSeconds()
                    + " s");
            waiting = true;
            timer = loop.after(wait, this::start);
        }
        changed.run();
    }

    private Failure failed(String reason, String message, @Nullable Integer code) {
        return new Failure(reason, message, Instant.ofEpochMilli(loop.clock().millis()), code);
    }

    private void terminate(ProcessRun processRun) {
        loop.io(() -> supervisor.signal(processRun.started, false));
        EventLoop.Timer unused = loop.after(grace, () -> {
            if (!processRun.over) {
                log.add(prefix + "has not exited within " + grace.toSeconds() + " s, is killed");
                loop.io(() -> supervisor.signal(processRun.started, true));
            }
        });
    }

    /** Asks the process to exit, kills it after the grace period, and runs the callback when it has exited. */
    void stop(Runnable then) {
        ended = then;
        if (stopping) {
            return;
        }
        stopping = true;
        timer.cancel();
        ProcessRun now = run;
        if (now != null) {
            terminate(now);
        } else if (!starting) {
            finish();
        }
    }

    /** Prevents further restarts. Called at server shutdown. */
    void abandon() {
        stopping = true;
        timer.cancel();
    }

    private void finish() {
        Runnable then = ended;
        ended = null;
        if (then != null) {
            then.run();
        }
        changed.run();
    }
}
