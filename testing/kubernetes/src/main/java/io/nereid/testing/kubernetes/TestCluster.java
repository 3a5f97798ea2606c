// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes;

import io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinition;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * A Kubernetes control plane in processes of this machine: etcd, API server, controller manager and scheduler, started by
 * {@code testing/kubernetes/cluster.sh}. It has no nodes until a {@link FakeNode} registers.
 *
 * <pre>{@code
 * try (TestCluster cluster = TestCluster.start(directory);
 *         FakeNode node = new FakeNode(cluster.client(), "node-1", "10.244.0", PodRunner.READY)) {
 *     cluster.client().resource(deployment).create();
 * }
 * }</pre>
 *
 * <p>Thread-safe. Closing it stops the processes; they also stop when this JVM ends.
 */
public final class TestCluster implements AutoCloseable {
    private static final Path SCRIPT = root().resolve("testing/kubernetes/cluster.sh");

    private final Path directory;
    private final Path kubeconfig;
    private final KubernetesClient client;

    private TestCluster(Path directory, Path kubeconfig) {
        this.directory = directory;
        this.kubeconfig = kubeconfig;
        this.client = connect();
    }

    /** Why no cluster can be started; empty when one can. */
    public static Optional<String> unavailable() {
        if ("off".equals(System.getenv("NEREID_TEST_CLUSTER"))) {
            return Optional.of("switched off (NEREID_TEST_CLUSTER=off)");
        }
        try {
            return run(List.of(SCRIPT.toString(), "binary"), 10).isBlank()
                    ? Optional.of("the control plane is not built (testing/kubernetes/cluster.sh build)")
                    : Optional.empty();
        } catch (IOException e) {
            return Optional.of("the control plane is not built (testing/kubernetes/cluster.sh build)");
        }
    }

    /**
     * Starts a cluster; blocks until its API server is ready, some seconds.
     *
     * @param directory a folder for its state; a cluster that was stopped there goes on with its objects
     */
    public static TestCluster start(Path directory) throws IOException {
        String owner = Long.toString(ProcessHandle.current().pid());
        String kubeconfig = run(List.of(SCRIPT.toString(), "start", directory.toString(), "--owner", owner), 180);
        return new TestCluster(directory, Path.of(kubeconfig.strip()));
    }

    /** A client with the rights of an administrator; closed with the cluster. */
    public KubernetesClient client() {
        return client;
    }

    /** A client of its own with the rights of an administrator, which the caller closes. */
    public KubernetesClient connect() {
        try {
            Config config = Config.fromKubeconfig(Files.readString(kubeconfig));
            config.setRequestTimeout(60_000);
            return new KubernetesClientBuilder().withConfig(config).build();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The file with the address and the credentials of the administrator. */
    public Path kubeconfig() {
        return kubeconfig;
    }

    /** The log of one of the control plane's programs, such as {@code kube-apiserver}. */
    public String log(String program) throws IOException {
        return Files.readString(directory.resolve(program + ".log"));
    }

    /** Runs kubectl and returns what it prints; fails with its error output, and with the end of the log of what has ended. */
    public String kubectl(String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(SCRIPT.toString(), "kubectl", directory.toString()));
        command.addAll(List.of(arguments));
        try {
            return run(command, 120);
        } catch (IOException e) {
            throw new IOException(e.getMessage() + ended(), e);
        }
    }

    /** The programs of the control plane that have ended, each with the end of its log; empty while all run. */
    private String ended() throws IOException {
        StringBuilder text = new StringBuilder();
        for (String program : List.of("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")) {
            Path pid = directory.resolve(program + ".pid");
            if (Files.exists(pid)
                    && ProcessHandle.of(Long.parseLong(Files.readString(pid).strip()))
                            .filter(ProcessHandle::isAlive)
                            .isEmpty()) {
                String log = log(program);
                text.append("; ")
                        .append(program)
                        .append(" has ended: ")
                        .append(log.substring(Math.max(0, log.length() - 2000)));
            }
        }
        return text.toString();
    }

    /** Applies CustomResourceDefinitions, each as JSON, and waits until the API server serves their kinds. */
    public void define(List<String> definitions) throws IOException {
        Path file = Files.createTempFile(directory, "definitions", ".json");
        Files.writeString(file, String.join("\n", definitions));
        kubectl("apply", "--server-side", "--force-conflicts", "-f", file.toString());
        for (CustomResourceDefinition definition :
                client.apiextensions().v1().customResourceDefinitions().list().getItems()) {
            client.apiextensions()
                    .v1()
                    .customResourceDefinitions()
                    .withName(definition.getMetadata().getName())
                    .waitUntilCondition(TestCluster::established, 60, TimeUnit.SECONDS);
        }
    }

    private static boolean established(CustomResourceDefinition definition) {
        return definition != null
                && definition.getStatus() != null
                && definition.getStatus().getConditions() != null
                && definition.getStatus().getConditions().stream()
                        .anyMatch(one -> one.getType().equals("Established")
                                && one.getStatus().equals("True"));
    }

    /** Stops the API server and starts it again with the same address and the same objects. */
    public void restartApiServer() throws IOException {
        run(List.of(SCRIPT.toString(), "restart-api-server", directory.toString()), 180);
    }

    @Override
    public void close() {
        client.close();
        try {
            run(List.of(SCRIPT.toString(), "stop", directory.toString()), 60);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The folder of resources that KServe takes, which is described by its README. */
    public static Path kserve() {
        return root().resolve("testing/kubernetes/kserve");
    }

    /** The root of the checkout that the tests run in. */
    public static Path root() {
        Path folder = Path.of("").toAbsolutePath();
        while (folder != null && !Files.isRegularFile(folder.resolve("testing/kubernetes/cluster.sh"))) {
            folder = folder.getParent();
        }
        if (folder == null) {
            throw new IllegalStateException("no folder above " + Path.of("").toAbsolutePath()
                    + " has testing/kubernetes/cluster.sh (expected: tests run in a checkout)");
        }
        return folder;
    }

    private static String run(List<String> command, int seconds) throws IOException {
        // Files, not pipes: the cluster's processes keep inherited pipes open.
        File out = File.createTempFile("cluster", ".out");
        File err = File.createTempFile("cluster", ".err");
        try {
            Process process = new ProcessBuilder(command)
                    .redirectInput(new File("/dev/null"))
                    .redirectOutput(out)
                    .redirectError(err)
                    .start();
            if (!process.waitFor(seconds, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                throw new IOException(String.join(" ", command) + " took more than " + seconds + " s");
            }
            if (process.exitValue() != 0) {
                throw new IOException(String.join(" ", command) + ": "
                        + Files.readString(err.toPath(), StandardCharsets.UTF_8).strip());
            }
            return Files.readString(out.toPath(), StandardCharsets.UTF_8);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", e);
        } finally {
            Files.deleteIfExists(out.toPath());
            Files.deleteIfExists(err.toPath());
        }
    }
}
