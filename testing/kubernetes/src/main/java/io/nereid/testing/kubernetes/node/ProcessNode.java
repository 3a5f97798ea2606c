// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes.node;

import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodStatus;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.testing.kubernetes.FakeNode;
import io.nereid.testing.kubernetes.PodRunner;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A node whose pods are processes of this machine, with networks, file systems, users, volumes, probes and restarts as
 * containers have them; what stands for their images is given. Services have their addresses and names.
 *
 * <p>The JVM runs under {@code testing/kubernetes/network.sh}. One node of a namespace answers for the Services; others are
 * made by {@link #another}.
 *
 * <pre>{@code
 * try (ProcessNode node = ProcessNode.start(client, "node-1", images::get, directory)) {
 *     client.resource(deployment).create();
 * }
 * }</pre>
 *
 * <p>What it does not have: limits of memory and processors, container images, image volumes, gRPC probes, and volumes that
 * change while a pod runs. Thread-safe.
 */
public final class ProcessNode implements AutoCloseable {
    private final KubernetesClient client;
    private final Function<String, @Nullable ContainerImage> images;
    private final Path folder;
    private final Map<String, PodProcess> pods = new ConcurrentHashMap<>();
    private final FakeNode node;
    private final List<AutoCloseable> services = new ArrayList<>();
    private int others;

    private ProcessNode(
            KubernetesClient client,
            String name,
            String prefix,
            Function<String, @Nullable ContainerImage> images,
            Path folder) {
        this.client = client;
        this.images = images;
        this.folder = folder;
        this.node = new FakeNode(client, name, prefix, new Runner());
    }

    /** Why pods cannot be processes here; empty when they can. */
    public static Optional<String> unavailable() {
        // The bridge exists in the namespace of network.sh alone.
        return bridge() ? Optional.empty() : Optional.of("not run under testing/kubernetes/network.sh");
    }

    private static boolean bridge() {
        try {
            return java.net.NetworkInterface.getByName("nereid0") != null;
        } catch (java.net.SocketException e) {
            return false;
        }
    }

    /**
     * Starts the node, and the addresses and names of Services; blocks until it is registered.
     *
     * @param images what stands for a container image, or null if there is not such an image
     * @param folder where the volumes and the logs are kept
     */
    public static ProcessNode start(
            KubernetesClient client, String name, Function<String, @Nullable ContainerImage> images, Path folder)
            throws IOException {
        ServiceProxy proxy = new ServiceProxy(client);
        ClusterDns names = new ClusterDns(proxy);
        ProcessNode node = new ProcessNode(client, name, "10.244.0", images, Files.createDirectories(folder));
        node.services.add(names);
        node.services.add(proxy);
        return node;
    }

    /** Starts one more node of the same cluster. */
    public ProcessNode another(String name) throws IOException {
        others++;
        return new ProcessNode(
                client, name, "10.244." + others, images, Files.createDirectories(folder.resolve("node-" + others)));
    }

    /** What the containers of a pod have printed, of all their starts; for people who read why a test failed. */
    public String logs(String namespace, String pod) throws IOException {
        StringBuilder text = new StringBuilder();
        try (Stream<Path> files = Files.walk(folder)) {
            List<Path> logs = files.filter(one ->
                            one.toString().endsWith(".log") && one.toString().contains("/" + namespace + "_" + pod))
                    .sorted(Comparator.naturalOrder())
                    .toList();
            for (Path log : logs) {
                text.append("== ").append(folder.relativize(log)).append('\n').append(Files.readString(log));
            }
        }
        return text.toString();
    }

    private final class Runner implements PodRunner {
        @Override
        public void start(Pod pod, String address, Consumer<PodStatus> status) {
            try {
                String uid = pod.getMetadata().getUid();
                Path place = Files.createDirectories(folder.resolve(pod.getMetadata()
                                .getNamespace() + "_" + pod.getMetadata().getName() + "_" + uid));
                PodProcess process = new PodProcess(client, images, pod, address, place, status);
                pods.put(uid, process);
                process.start();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        @Override
        public void stop(Pod pod, Runnable stopped) {
            PodProcess process = pods.remove(pod.getMetadata().getUid());
            if (process == null) {
                stopped.run();
            } else {
                process.stop(stopped);
            }
        }
    }

    /** Ends the node and all its pods at once, without a word to the API server, as a machine that has failed. */
    @Override
    public void close() {
        node.close();
        pods.values().forEach(PodProcess::kill);
        pods.clear();
        for (AutoCloseable one : services) {
            try {
                one.close();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }
    }
}
