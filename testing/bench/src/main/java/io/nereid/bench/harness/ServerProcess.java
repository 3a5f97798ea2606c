// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509TrustManager;

/** A server in a child process. Confined to one thread. */
public final class ServerProcess implements AutoCloseable {
    private static final SSLSocketFactory TRUSTING = trusting();

    private String name;
    private final Process process;
    private final String scheme;
    private final int port;
    private final Path log;
    private final double secondsToReady;

    private ServerProcess(String name, List<String> command, int port, Path log) throws IOException {
        this(name, Map.of(), command, port, log);
    }

    private ServerProcess(String name, Map<String, String> environment, List<String> command, int port, Path log)
            throws IOException {
        this.name = name;
        this.scheme = command.contains("--tls-cert") ? "https" : "http";
        this.port = port;
        this.log = log;
        ProcessBuilder builder =
                new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile());
        // JVM options in the caller's environment must not affect the servers.
        builder.environment().keySet().removeIf(k -> k.startsWith("JAVA_TOOL_OPTIONS") || k.startsWith("_JAVA_OPT"));
        builder.environment().putAll(environment);
        // The plugin with the identity model that most scenarios serve.
        String samples = System.getProperty("nereid.samples");
        if (samples != null) {
            builder.environment().put("NEREID_PLUGIN_DIR", samples);
        }
        long from = System.nanoTime();
        this.process = builder.start();
        awaitReady();
        this.secondsToReady = (System.nanoTime() - from) / 1e9;
    }

    /** Starts Nereid with its launcher. */
    public static ServerProcess nereid(Path distribution, Path repository, Path scratch, String... options)
            throws IOException {
        return nereid(Map.of(), distribution, repository, scratch, options);
    }

    /** As {@link #nereid(Path, Path, Path, String...)}, with variables of the environment. */
    public static ServerProcess nereid(
            Map<String, String> environment, Path distribution, Path repository, Path scratch, String... options)
            throws IOException {
        int port = freePort();
        List<String> command = new ArrayList<>(List.of(
                distribution.resolve("bin/nereid").toString(),
                "serve",
                repository.toString(),
                "--port",
                Integer.toString(port)));
        command.addAll(Arrays.asList(options));
        return new ServerProcess("nereid", environment, command, port, scratch.resolve("nereid-" + port + ".log"));
    }

    /** Starts Nereid with a model list. */
    public static ServerProcess listed(Path distribution, Path list, Path scratch, String... options)
            throws IOException {
        int port = freePort();
        List<String> command = new ArrayList<>(List.of(
                distribution.resolve("bin/nereid").toString(),
                "serve",
                "--model_config_file=" + list,
                "--port",
                Integer.toString(port)));
        command.addAll(Arrays.asList(options));
        return new ServerProcess("nereid", command, port, scratch.resolve("nereid-" + port + ".log"));
    }

    /** Starts the no-op server, with the same JVM and the same flags as {@code like}. */
    public static ServerProcess nothing(ServerProcess like, int replyBytes, Path scratch) throws IOException {
        return beside(like, "do-nothing", NoopServer.class, List.of(Integer.toString(replyBytes)), scratch);
    }

    /** Starts a server with so many plain sessions of an ONNX model, with the same JVM and the same flags as {@code like}. */
    public static ServerProcess plainSessions(ServerProcess like, Path model, int sessions, Path scratch)
            throws IOException {
        return beside(
                like,
                "plain-" + sessions,
                PlainSessionServer.class,
                List.of(model.toString(), Integer.toString(sessions)),
                scratch);
    }

    private static ServerProcess beside(
            ServerProcess like, String name, Class<?> program, List<String> arguments, Path scratch)
            throws IOException {
        int port = freePort();
        String[] model = ProcessStatistics.commandLine(like.pid());
        List<String> command = new ArrayList<>();
        command.add(model[0]);
        for (int i = 1; i < model.length && !model[i].startsWith("io.nereid."); i++) {
            if (model[i].equals("-cp") || model[i].equals("-classpath")) {
                i++;
            } else if (!model[i].startsWith("-XX:SharedArchiveFile") && !model[i].startsWith("-XX:AOTCache")) {
                command.add(model[i]);
            }
        }
        command.addAll(
                List.of("-cp", System.getProperty("java.class.path"), program.getName(), Integer.toString(port)));
        command.addAll(arguments);
        return new ServerProcess(name, command, port, scratch.resolve(name + "-" + port + ".log"));
    }

    public static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    private void awaitReady() throws IOException {
        long due = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!ready()) {
            if (!process.isAlive() || System.nanoTime() - due > 0) {
                process.destroyForcibly();
                throw new IOException(name + " did not become ready; its output:\n" + Files.readString(log));
            }
            LockSupport.parkNanos(2_000_000);
        }
    }

    private boolean ready() {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 1000);
            socket.setSoTimeout(1000);
            if (scheme.equals("http")) {
                return ready(socket);
            }
            try (Socket encrypted = TRUSTING.createSocket(socket, "127.0.0.1", port, true)) {
                return ready(encrypted);
            }
        } catch (IOException e) {
            return false;
        }
    }

    private static boolean ready(Socket socket) throws IOException {
        OutputStream out = socket.getOutputStream();
        out.write("GET /v2/health/ready HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
                .getBytes(StandardCharsets.US_ASCII));
        byte[] head = socket.getInputStream().readNBytes(12);
        return new String(head, StandardCharsets.US_ASCII).endsWith(" 200");
    }

    /** Accepts the certificate that a scenario has made for its server. */
    private static SSLSocketFactory trusting() {
        try {
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, new TrustManager[] {new Trusting()}, null);
            return context.getSocketFactory();
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Checks nothing. Stateless. */
    private static final class Trusting implements X509TrustManager {
        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type) {}

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type) {}

        @Override
        public X509Certificate[] getAcceptedIssuers() {
            return new X509Certificate[0];
        }
    }

    public String name() {
        return name;
    }

    /** Gives this server another name in what is printed. */
    public ServerProcess named(String other) {
        name = other;
        return this;
    }

    public long pid() {
        return process.pid();
    }

    int port() {
        return port;
    }

    public String url(String path) {
        return scheme + "://127.0.0.1:" + port + path;
    }

    public double secondsToReady() {
        return secondsToReady;
    }

    File log() {
        return log.toFile();
    }

    @Override
    public void close() {
        process.destroy();
        try {
            if (!process.waitFor(20, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
            }
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
