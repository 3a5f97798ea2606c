// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes.node;

import io.fabric8.kubernetes.api.model.Container;
import io.fabric8.kubernetes.api.model.ContainerState;
import io.fabric8.kubernetes.api.model.ContainerStateBuilder;
import io.fabric8.kubernetes.api.model.ContainerStatus;
import io.fabric8.kubernetes.api.model.ContainerStatusBuilder;
import io.fabric8.kubernetes.api.model.LifecycleHandler;
import io.fabric8.kubernetes.api.model.Probe;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One container of a pod: its program, its restarts, its probes and its status. Its folder keeps the log of every start, as
 * {@code 0.log}, {@code 1.log} and so on. Not thread-safe: used on the pod's thread alone.
 */
final class ContainerProcess {
    private static final long FIRST_BACKOFF_MILLIS = 1000;
    private static final long LONGEST_BACKOFF_MILLIS = 60_000;
    private static final int MESSAGE_BYTES = 2048;

    /** Starts a program; fails with the reason for which a kubelet would not start it. */
    interface Starter {
        Process start(Path folder, Path log) throws RefusedException;
    }

    /** A container cannot be started now. */
    static final class RefusedException extends Exception {
        private static final long serialVersionUID = 1L;
        final String reason;

        RefusedException(String reason, String message) {
            super(message);
            this.reason = reason;
        }
    }

    private final Container container;
    private final Path folder;
    private final String address;
    private final Starter starter;
    private final boolean restarts;
    private final boolean restartsAfterSuccess;

    private @Nullable Process process;
    private @Nullable ContainerProbe startup;
    private @Nullable ContainerProbe readiness;
    private @Nullable ContainerProbe liveness;
    private ContainerState state = waiting("ContainerCreating", null);
    private @Nullable ContainerState last;
    private int starts;
    private long again;
    private long backoff = FIRST_BACKOFF_MILLIS;
    private long started;
    private boolean stopping;
    private long killAt = Long.MAX_VALUE;

    ContainerProcess(
            Container container,
            Path folder,
            String address,
            Starter starter,
            boolean restarts,
            boolean restartsAfterSuccess) {
        this.container = container;
        this.folder = folder;
        this.address = address;
        this.starter = starter;
        this.restarts = restarts;
        this.restartsAfterSuccess = restartsAfterSuccess;
    }

    boolean isRunning() {
        return process != null;
    }

    /** It has ended and will not be started again. */
    boolean isDone() {
        return process == null && state.getTerminated() != null && (stopping || !mayRestart());
    }

    boolean hasSucceeded() {
        return state.getTerminated() != null && state.getTerminated().getExitCode() == 0;
    }

    /** Its startup probe, if it has one, has passed. */
    boolean isStarted() {
        return process != null && (startup == null || startup.passed());
    }

    boolean isReady() {
        return isStarted() && (readiness == null || readiness.passed());
    }

    private boolean mayRestart() {
        return restarts && (restartsAfterSuccess || !hasSucceeded());
    }

    /** Starts it if it is due, notices its end, and runs its probes. */
    void look(long now) {
        Process running = process;
        if (running == null) {
            if (!stopping && now >= again && (state.getTerminated() == null || mayRestart())) {
                start(now);
            }
            return;
        }
        if (!running.isAlive()) {
            ended(running.exitValue(), now);
            return;
        }
        if (now >= killAt) {
            killAt = Long.MAX_VALUE;
            kill(running);
            return;
        }
        if (startup != null && !startup.passed()) {
            startup.look(now);
            if (startup.failed() && !stopping) {
                kill(running);
            }
            if (startup.passed() && readiness != null) {
                readiness.hasten();
            }
            if (!startup.passed()) {
                return;
            }
        }
        if (readiness != null) {
            readiness.look(now);
        }
        if (liveness != null && !stopping) {
            liveness.look(now);
            if (liveness.failed()) {
                kill(running);
            }
        }
    }

    private void start(long now) {
        try {
            Files.createDirectories(folder);
            Path place = Files.createDirectories(folder.resolve("start-" + starts));
            Path message = place.resolve("termination-log");
            Files.writeString(message, "");
            message.toFile().setWritable(true, false);
            Process program = starter.start(place, folder.resolve(starts + ".log"));
            process = program;
            starts++;
            started = now;
            long pid = program.pid();
            startup = probe(container.getStartupProbe(), pid, now);
            readiness = probe(container.getReadinessProbe(), pid, now);
            liveness = probe(container.getLivenessProbe(), pid, now);
            state = new ContainerStateBuilder().withNewRunning(time(now)).build();
        } catch (RefusedException e) {
            again = now + 2000;
            state = waiting(e.reason, e.getMessage());
        } catch (IOException e) {
            again = now + 2000;
            state = waiting("CreateContainerError", e.getMessage());
        }
    }

    private @Nullable ContainerProbe probe(@Nullable Probe probe, long pid, long now) {
        return probe == null ? null : new ContainerProbe(probe, container, address, pid, now);
    }

    private void ended(int code, long now) {
        process = null;
        ContainerState terminated = new ContainerStateBuilder()
                .withNewTerminated()
                .withExitCode(code)
                .withReason(code == 0 ? "Completed" : "Error")
                .withMessage(message(code))
                .withStartedAt(time(started))
                .withFinishedAt(time(now))
                .withContainerID("process://" + container.getName() + "-" + (starts - 1))
                .endTerminated()
                .build();
        state = terminated;
        if (stopping || !mayRestart()) {
            return;
        }
        last = terminated;
        // As a kubelet does: a program that ran for long begins with the shortest wait again.
        if (now - started > 600_000) {
            backoff = FIRST_BACKOFF_MILLIS;
        }
        again = now + backoff;
        state = waiting(
                "CrashLoopBackOff",
                "back-off " + backoff / 1000 + "s restarting failed container=" + container.getName());
        backoff = Math.min(backoff * 2, LONGEST_BACKOFF_MILLIS);
    }

    private @Nullable String message(int code) {
        try {
            Path file = folder.resolve("start-" + (starts - 1)).resolve("termination-log");
            String message = tail(file);
            if (message.isEmpty()
                    && code != 0
                    && "FallbackToLogsOnError".equals(container.getTerminationMessagePolicy())) {
                message = tail(folder.resolve(starts - 1 + ".log"));
            }
            return message.isEmpty() ? null : message;
        } catch (IOException e) {
            return null;
        }
    }

    private static String tail(Path file) throws IOException {
        byte[] bytes = Files.readAllBytes(file);
        int from = Math.max(0, bytes.length - MESSAGE_BYTES);
        return new String(bytes, from, bytes.length - from, StandardCharsets.UTF_8);
    }

    /** Begins its end: the hook runs, then the program gets SIGTERM; after the deadline it is killed. */
    void stop(long deadline) {
        stopping = true;
        killAt = deadline;
        Process running = process;
        if (running == null) {
            return;
        }
        LifecycleHandler hook = container.getLifecycle() == null
                ? null
                : container.getLifecycle().getPreStop();
        if (hook == null) {
            running.destroy();
            return;
        }
        io.nereid.base.Threads.named("pre-stop")
                .newThread(() -> {
                    try {
                        run(hook, running.pid());
                    } catch (IOException | InterruptedException e) {
                        // as a kubelet: a hook that fails does not keep the program from ending
                        System.getLogger(ContainerProcess.class.getName())
                                .log(System.Logger.Level.INFO, "preStop of " + container.getName(), e);
                    }
                    running.destroy();
                })
                .start();
    }

    private void run(LifecycleHandler hook, long pid) throws IOException, InterruptedException {
        if (hook.getExec() != null) {
            ContainerProbe.exec(hook.getExec(), pid, Integer.MAX_VALUE);
        } else if (hook.getHttpGet() != null) {
            ContainerProbe.get(hook.getHttpGet(), container, address, 60_000);
        } else if (hook.getSleep() != null) {
            boolean unused = new java.util.concurrent.CountDownLatch(1)
                    .await(hook.getSleep().getSeconds(), java.util.concurrent.TimeUnit.SECONDS);
        }
    }

    /** Ends the program and what it has started, at once. */
    void kill() {
        stopping = true;
        if (process != null) {
            kill(process);
        }
    }

    private static void kill(Process process) {
        List<ProcessHandle> children = process.descendants().toList();
        process.destroyForcibly();
        children.forEach(ProcessHandle::destroyForcibly);
    }

    ContainerStatus status() {
        return new ContainerStatusBuilder()
                .withName(container.getName())
                .withImage(container.getImage())
                .withImageID("process://" + container.getImage())
                .withContainerID(starts == 0 ? null : "process://" + container.getName() + "-" + (starts - 1))
                .withReady(isReady() || (hasSucceeded() && !mayRestart()))
                .withStarted(isStarted())
                .withRestartCount(Math.max(0, starts - 1))
                .withState(state)
                .withLastState(last)
                .build();
    }

    private static ContainerState waiting(String reason, @Nullable String message) {
        return new ContainerStateBuilder().withNewWaiting(message, reason).build();
    }

    static String time(long millis) {
        return Instant.ofEpochMilli(millis).truncatedTo(ChronoUnit.SECONDS).toString();
    }
}
