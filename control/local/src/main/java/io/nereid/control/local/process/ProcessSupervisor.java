// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.process;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Starts child processes, each in a session of its own, ends them together with all their descendants, and ends
 * processes that an earlier server left behind. To find them again, every child has a unique marker in its environment,
 * which its descendants inherit, and a file with its pid and start time. Thread-safe; methods can block.
 */
public final class ProcessSupervisor {
    private static final Logger LOG = LoggerFactory.getLogger(ProcessSupervisor.class);
    private static final String MARK = "NEREID_PROCESS";
    private static final Path PROC = Path.of("/proc");
    private static final String OWN = "own";
    private static final Duration TIME_TO_END = Duration.ofSeconds(5);

    private final Path directory;
    private final @Nullable Path setsid;
    private final @Nullable Path kill;
    private final Cgroups cgroups;
    private String server = "";

    /**
     * A start holds the read lock, {@link #endAll} the write lock: no process is started after the shutdown has begun.
     */
    private final ReentrantReadWriteLock startLock = new ReentrantReadWriteLock();

    private final Set<Started> running = ConcurrentHashMap.newKeySet();
    private boolean ended;

    /** Creates a supervisor that keeps its pid files in a directory. */
    public ProcessSupervisor(Path directory) {
        this.directory = directory.resolve("processes");
        this.setsid = program("setsid", System.getenv("PATH"));
        this.kill = program("kill", System.getenv("PATH"));
        this.cgroups = new Cgroups();
    }

    /** A started process. */
    record Started(
            java.lang.Process process,
            String mark,
            Path file,
            @Nullable Path cgroup) {}

    /**
     * Ends processes that an earlier server with the same directory left running.
     *
     * @return the number of ended processes
     */
    public int killOrphans() {
        int ended = 0;
        try {
            Files.createDirectories(directory);
            Path own = directory.resolve(OWN);
            if (Files.exists(own)) {
                server = Files.readString(own).strip();
            }
            if (server.isEmpty()) {
                server = UUID.randomUUID().toString();
                Files.writeString(own, server);
            }
            Set<Long> orphans = new LinkedHashSet<>();
            try (Stream<Path> files = Files.list(directory)) {
                for (Path file :
                        files.filter(f -> f.toString().endsWith(".pid")).toList()) {
                    Long pid = alive(file);
                    if (pid != null) {
                        orphans.add(pid);
                    }
                }
            }
            orphans.addAll(marked(server + "/"));
            for (long pid : orphans) {
                LOG.warn("ending process {} of an earlier server", pid);
                killGroup(pid, "KILL");
                ProcessHandle.of(pid).ifPresent(p -> {
                    p.descendants().forEach(ProcessHandle::destroyForcibly);
                    p.destroyForcibly();
                });
                ended++;
            }
            try (Stream<Path> files = Files.list(directory)) {
                for (Path file :
                        files.filter(f -> f.toString().endsWith(".pid")).toList()) {
                    Files.deleteIfExists(file);
                }
            }
        } catch (IOException e) {
            LOG.warn("cannot search {} for processes of an earlier server: {}", directory, e.getMessage());
        }
        return ended;
    }

    /** Returns the pid in a file if that process still runs: same pid and same start time. */
    private static @Nullable Long alive(Path file) {
        try {
            String[] fields = Files.readString(file).strip().split(" ");
            long pid = Long.parseLong(fields[0]);
            return fields.length > 1 && fields[1].equals(startOf(pid)) ? pid : null;
        } catch (IOException | NumberFormatException e) {
            return null;
        }
    }

    /**
     * Returns the start time of a process, in the system's unit. Pids are reused; pid and start time together are
     * unique.
     */
    private static String startOf(long pid) {
        try {
            String stat = Files.readString(PROC.resolve(pid + "/stat"));
            String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
            return fields[0].equals("Z") ? "zombie" : fields[19];
        } catch (IOException | RuntimeException e) {
            return ProcessHandle.of(pid)
                    .flatMap(p -> p.info().startInstant())
                    .map(i -> "i" + i.getEpochSecond())
                    .orElse("gone");
        }
    }

    /** Returns the processes whose marker has the given prefix. */
    private static Set<Long> marked(String beginning) {
        byte[] marker = (MARK + "=" + beginning).getBytes(StandardCharsets.UTF_8);
        Set<Long> found = new LinkedHashSet<>();
        if (!Files.isDirectory(PROC)) {
            return found;
        }
        long self = ProcessHandle.current().pid();
        try (Stream<Path> all = Files.list(PROC)) {
            for (Path p : all.toList()) {
                String name = String.valueOf(p.getFileName());
                if (!name.isEmpty() && Character.isDigit(name.charAt(0)) && hasMark(p, marker)) {
                    long pid = Long.parseLong(name);
                    if (pid != self) {
                        found.add(pid);
                    }
                }
            }
        } catch (IOException e) {
            LOG.debug("{} cannot be listed", PROC, e);
        }
        return found;
    }

    private static boolean hasMark(Path process, byte[] marker) {
        try {
            String environment =
                    new String(Files.readAllBytes(process.resolve("environ")), StandardCharsets.ISO_8859_1);
            String mark = new String(marker, StandardCharsets.ISO_8859_1);
            return environment.startsWith(mark) || environment.contains("\0" + mark);
        } catch (IOException | RuntimeException e) {
            return false;
        }
    }

    /**
     * Starts a process. The caller reads its output, which otherwise fills the pipe and blocks the process.
     *
     * @param name name of the pid file, unique among the running processes
     * @param memoryBytes memory limit; 0 for no limit
     * @param cpus CPU limit; 0 for no limit
     * @throws ServingException FAILED_PRECONDITION when it cannot be started, UNAVAILABLE after {@link #endAll}
     */
    Started start(String name, ProcessSpec start, Path workingDirectory, long memoryBytes, double cpus) {
        startLock.readLock().lock();
        try {
            if (ended) {
                throw ServingException.of(ErrorCode.UNAVAILABLE, "the server is shutting down");
            }
            Started started = begin(name, start, workingDirectory, memoryBytes, cpus);
            running.add(started);
            return started;
        } finally {
            startLock.readLock().unlock();
        }
    }

    private Started begin(String name, ProcessSpec start, Path workingDirectory, long memoryBytes, double cpus) {
        List<String> given = start.command();
        if (given.isEmpty()) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "container '" + start.container() + "' has no command",
                    "set its command: container images are not run here");
        }
        Path program = found(given.get(0), start.environment(), workingDirectory);
        if (program == null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "the program '" + given.get(0) + "' of container '" + start.container()
                            + "' is not on this machine",
                    "install it, or correct the container's command; container images are not run here");
        }
        String mark = server + "/" + UUID.randomUUID();
        try {
            Path cgroup = cgroups.make(name, memoryBytes, cpus);
            List<String> command = new ArrayList<>();
            if (setsid != null) {
                command.add(setsid.toString());
            }
            if (cgroup != null) {
                // A shell joins the cgroup before it becomes the program, so that the limits hold from the first
                // moment.
                command.addAll(List.of(
                        "/bin/sh",
                        "-c",
                        "echo $$ > \"$0\" && exec \"$@\"",
                        cgroup.resolve("cgroup.procs").toString()));
            }
            command.add(program.toString());
            command.addAll(given.subList(1, given.size()));
            ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
            builder.environment().clear();
            builder.environment().putAll(start.environment());
            builder.environment().put(MARK, mark);
            Files.createDirectories(workingDirectory);
            builder.directory(workingDirectory.toFile());
            java.lang.Process process = builder.start();
            process.getOutputStream().close();
            Path file = directory.resolve(name.replace('/', '_') + ".pid");
            Files.createDirectories(directory);
            Files.writeString(file, process.pid() + " " + startOf(process.pid()) + "\n");
            return new Started(process, mark, file, cgroup);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "container '" + start.container() + "' cannot be started: " + e.getMessage(),
                    "check that its command and its working directory exist",
                    e);
        }
    }

    private static @Nullable Path found(String program, Map<String, String> environment, Path workingDirectory) {
        if (program.indexOf('/') >= 0) {
            Path path = workingDirectory.resolve(program);
            return Files.isExecutable(path) && !Files.isDirectory(path) ? path : null;
        }
        return program(program, environment.get("PATH"));
    }

    private static @Nullable Path program(String name, @Nullable String path) {
        for (String directory : (path == null ? "/usr/local/bin:/usr/bin:/bin" : path).split(":")) {
            Path file = Path.of(directory.isEmpty() ? "." : directory).resolve(name);
            if (Files.isExecutable(file) && !Files.isDirectory(file)) {
                return file.toAbsolutePath();
            }
        }
        return null;
    }

    /** Asks a process and its descendants to exit (SIGTERM), or kills them. Blocks briefly. */
    void signal(Started started, boolean forcibly) {
        java.lang.Process process = started.process;
        List<ProcessHandle> descendants = process.descendants().toList();
        boolean signalled = setsid != null && killGroup(process.pid(), forcibly ? "KILL" : "TERM");
        if (forcibly) {
            descendants.forEach(ProcessHandle::destroyForcibly);
            process.destroyForcibly();
            // Descendants that have left the session still have the marker.
            marked(started.mark).forEach(p -> ProcessHandle.of(p).ifPresent(ProcessHandle::destroyForcibly));
        } else if (!signalled) {
            descendants.forEach(ProcessHandle::destroy);
            process.destroy();
        }
    }

    /**
     * Prevents further starts, asks all processes to exit, waits up to five seconds for all of them together, and kills
     * those that are left.
     */
    public void endAll() {
        startLock.writeLock().lock();
        try {
            ended = true;
        } finally {
            startLock.writeLock().unlock();
        }
        List<Started> all = List.copyOf(running);
        all.forEach(s -> signal(s, false));
        long until = io.nereid.base.Clock.system().nanos() + TIME_TO_END.toNanos();
        for (Started s : all) {
            try {
                long left = until - io.nereid.base.Clock.system().nanos();
                if (!s.process.waitFor(Math.max(0, left), TimeUnit.NANOSECONDS)) {
                    signal(s, true);
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                signal(s, true);
            }
            sweep(s);
        }
    }

    /** Cleans up after an exited process: kills its descendants, and removes its pid file and cgroup. */
    void sweep(Started started) {
        running.remove(started);
        if (setsid != null) {
            killGroup(started.process.pid(), "KILL");
        }
        marked(started.mark).forEach(p -> ProcessHandle.of(p).ifPresent(ProcessHandle::destroyForcibly));
        try {
            Files.deleteIfExists(started.file);
        } catch (IOException e) {
            LOG.debug("{} cannot be removed", started.file, e);
        }
        Cgroups.remove(started.cgroup);
    }

    private boolean killGroup(long group, String signal) {
        if (kill == null || group <= 1) {
            return false;
        }
        try {
            java.lang.Process process = new ProcessBuilder(kill.toString(), "-" + signal, "--", "-" + group)
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .start();
            return process.waitFor(Duration.ofSeconds(5).toMillis(), TimeUnit.MILLISECONDS) && process.exitValue() == 0;
        } catch (IOException e) {
            return false;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /** Whether the system enforces memory and CPU limits, through cgroups. */
    boolean limits() {
        return cgroups.available();
    }

    /** Returns the resident memory of a process and its descendants, in bytes; 0 when unknown. */
    static long residentBytes(java.lang.Process process) {
        long pages = resident(process.pid());
        for (ProcessHandle p : process.descendants().toList()) {
            pages += resident(p.pid());
        }
        return pages * 4096;
    }

    private static long resident(long pid) {
        try {
            return Long.parseLong(Files.readString(PROC.resolve(pid + "/statm")).split(" ")[1]);
        } catch (IOException | RuntimeException e) {
            return 0;
        }
    }
}
