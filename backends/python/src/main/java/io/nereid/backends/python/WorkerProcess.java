// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A Python interpreter that runs {@code nereid_worker.py}. It is connected by Unix sockets, and by its standard input:
 * the server never writes to it, but when the server ends, however that happens, the pipe closes and the worker ends
 * itself. The worker's output goes to the server's log. Thread-safe.
 */
final class WorkerProcess {
    private static final System.Logger LOG = System.getLogger("io.nereid.backends.python");
    /** A limit on the socket's path: the smallest one of any system is 104 bytes with the terminator. */
    private static final int MAX_PATH = 100;

    private static final int SOCKETS = 3;
    private static final int LAST_LINES = 8;
    private static final int MAX_LINE = 8192;

    private final String label;
    private final Process process;
    private final List<SocketChannel> sockets = new ArrayList<>();

    @GuardedBy("lines") private final Deque<String> lines = new ArrayDeque<>();

    private final ExecutorService output;

    /**
     * Starts an interpreter and waits until it has connected.
     *
     * @param label the instance's name
     * @param interpreter a name or a path
     * @throws ServingException FAILED_PRECONDITION when it does not start
     */
    WorkerProcess(String label, String interpreter, Path script, Duration timeout) {
        this.label = label;
        this.output = Threads.single("python-output");
        Path directory = null;
        Process started = null;
        try {
            directory = Files.createTempDirectory("nereid-py");
            if (directory.resolve("s").toString().getBytes(StandardCharsets.UTF_8).length > MAX_PATH) {
                Files.delete(directory);
                directory = Files.createTempDirectory(Path.of("/tmp"), "nereid-py");
            }
            Path address = directory.resolve("s");
            try (ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
                server.bind(UnixDomainSocketAddress.of(address));
                server.configureBlocking(false);
                started = started(interpreter, script, address);
                this.process = started;
                Process running = started;
                output.execute(() -> copyOutput(running));
                while (sockets.size() < SOCKETS) {
                    SocketChannel socket = accepted(server, interpreter, timeout);
                    sockets.add(socket);
                    socket.configureBlocking(true);
                }
            }
        } catch (IOException e) {
            abandon(started);
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "the Python interpreter '" + interpreter + "' cannot be run: " + e.getMessage(),
                    "install Python 3.8 or newer, or name its interpreter with --backend-config python,python=PATH",
                    e);
        } catch (RuntimeException e) {
            abandon(started);
            throw e;
        } finally {
            delete(directory);
        }
    }

    private static void delete(@Nullable Path directory) {
        if (directory != null) {
            try {
                Files.deleteIfExists(directory.resolve("s"));
                Files.deleteIfExists(directory);
            } catch (IOException e) {
                LOG.log(System.Logger.Level.DEBUG, "left " + directory, e);
            }
        }
    }

    private void abandon(@Nullable Process started) {
        if (started != null) {
            started.destroyForcibly();
        }
        closeSockets();
        output.shutdown();
    }

    private static Process started(String interpreter, Path script, Path address) throws IOException {
        ProcessBuilder builder =
                new ProcessBuilder(interpreter, "-u", script.toString(), address.toString()).redirectErrorStream(true);
        builder.environment().remove("PYTHONHOME");
        Path binaries = Path.of(interpreter).getParent();
        Path environment = binaries == null ? null : binaries.getParent();
        if (binaries != null && environment != null) {
            // What activating the environment would set.
            builder.environment().put("VIRTUAL_ENV", environment.toString());
            builder.environment()
                    .merge("PATH", binaries.toString(), (old, own) -> own + java.io.File.pathSeparator + old);
        }
        return builder.start();
    }

    private SocketChannel accepted(ServerSocketChannel server, String interpreter, Duration timeout)
            throws IOException {
        long until = Clock.system().nanos() + timeout.toNanos();
        try (Selector selector = Selector.open()) {
            server.register(selector, SelectionKey.OP_ACCEPT);
            while (true) {
                selector.select(20);
                SocketChannel accepted = server.accept();
                if (accepted != null) {
                    return accepted;
                }
                if (!process.isAlive()) {
                    settle();
                    throw ServingException.of(
                            ErrorCode.FAILED_PRECONDITION,
                            "the Python interpreter '" + interpreter + "' ended at once (" + exit() + ")" + last(),
                            "check that it is Python 3.8 or newer and runs");
                }
                if (Clock.system().nanos() - until > 0) {
                    throw ServingException.of(
                            ErrorCode.FAILED_PRECONDITION,
                            "the Python interpreter '" + interpreter + "' did not start within " + timeout.toSeconds()
                                    + " s",
                            "increase the limit with --backend-config python,stub-timeout-seconds=N");
                }
            }
        }
    }

    private void copyOutput(Process of) {
        try (BufferedReader reader =
                new BufferedReader(new InputStreamReader(of.getInputStream(), StandardCharsets.UTF_8))) {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                String shown = line.length() > MAX_LINE ? line.substring(0, MAX_LINE) + "…" : line;
                synchronized (lines) {
                    lines.addLast(shown);
                    if (lines.size() > LAST_LINES) {
                        lines.removeFirst();
                    }
                }
                LOG.log(System.Logger.Level.INFO, label + ": " + shown);
            }
        } catch (IOException e) {
            LOG.log(System.Logger.Level.DEBUG, label + ": cannot read the worker's output", e);
        }
    }

    /** The socket for frames to the worker. The worker connects this one first, and the other two in their order here. */
    SocketChannel commands() {
        return sockets.get(0);
    }

    /** The socket for frames from the worker, but for results. */
    SocketChannel messages() {
        return sockets.get(1);
    }

    /** The socket for the results of runs. */
    SocketChannel results() {
        return sockets.get(2);
    }

    long pid() {
        return process.pid();
    }

    /** Runs {@code then} when the process has ended, on a thread of the JDK's common pool or on the caller's. */
    void onExit(Runnable then) {
        var unused = process.onExit().thenRun(then);
    }

    /** Waits for the process to end; false when it takes longer. */
    boolean awaitExit(Duration timeout) {
        try {
            return process.waitFor(timeout.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /** Kills the process and those that it has started; returns when it has ended. */
    void kill() {
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        // By the handle: Process.destroyForcibly also closes the pipes, and output that was not yet read would be lost.
        process.toHandle().destroyForcibly();
        awaitExit(Duration.ofSeconds(10));
        closeSockets();
        settle();
        process.destroyForcibly();
    }

    private void closeSockets() {
        for (SocketChannel socket : sockets) {
            try {
                socket.close();
            } catch (IOException e) {
                LOG.log(System.Logger.Level.DEBUG, label + ": cannot close a socket of the worker", e);
            }
        }
    }

    /** How the process ended, for a message. */
    String exit() {
        if (!awaitExit(Duration.ofSeconds(2))) {
            return "it does not exit";
        }
        int status = process.exitValue();
        return status > 128 && status < 160 ? "signal " + (status - 128) : "exit status " + status;
    }

    /** The last lines of its output, for a message; empty when it printed nothing. */
    String last() {
        synchronized (lines) {
            return lines.isEmpty() ? "" : ": " + String.join("\n", lines);
        }
    }

    /** Waits until its output has been read, for a limited time: a process that inherited the pipe may keep it open. */
    private void settle() {
        output.shutdown();
        try {
            if (!output.awaitTermination(2, TimeUnit.SECONDS)) {
                LOG.log(System.Logger.Level.DEBUG, label + ": another process keeps the worker's output open");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
