// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes.node;

import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.utils.Serialization;
import io.nereid.testing.kubernetes.TestCluster;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A cluster with nodes of processes as a program, for tests that are not in Java. It runs under {@code
 * testing/kubernetes/network.sh}:
 *
 * <pre>{@code
 * network.sh java -cp CLASSPATH io.nereid.testing.kubernetes.node.ProcessCluster FOLDER IMAGES.json
 * }</pre>
 *
 * <p>It prints the path of the administrator's kubeconfig when the cluster has its first node, {@code node-1}, and ends with
 * its standard input. The lines of the input are commands: {@code add NAME} starts one more node, {@code lose NAME} ends one
 * as a machine that fails; the answer to each is a line with {@code done} or the error.
 *
 * <p>The images are a JSON list of {@code {"name", "entrypoint", "environment", "mounts", "user"}}; a name that ends with an
 * asterisk stands for all images that begin with it.
 */
public final class ProcessCluster {
    private record Image(
            String name,
            List<String> entrypoint,
            Map<String, String> environment,
            Map<String, String> mounts,
            long user) {
        boolean matches(String image) {
            return name.endsWith("*") ? image.startsWith(name.substring(0, name.length() - 1)) : image.equals(name);
        }

        ContainerImage image() {
            Map<Path, String> places = new HashMap<>();
            mounts.forEach((from, at) -> places.put(Path.of(from), at));
            return new ContainerImage(entrypoint, environment, places, user);
        }
    }

    private ProcessCluster() {}

    public static void main(String[] arguments) throws IOException {
        Optional<String> why = ProcessNode.unavailable().or(TestCluster::unavailable);
        PrintStream out =
                new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), true, StandardCharsets.UTF_8);
        if (why.isPresent()) {
            out.println("unavailable: " + why.get());
            return;
        }
        Path folder = Path.of(arguments[0]).toAbsolutePath();
        Image[] images = Serialization.unmarshal(Files.readString(Path.of(arguments[1])), Image[].class);
        try (TestCluster cluster = TestCluster.start(folder.resolve("cluster"));
                KubernetesClient client = cluster.connect();
                ProcessNode first =
                        ProcessNode.start(client, "node-1", name -> find(images, name), folder.resolve("pods"))) {
            out.println(cluster.kubeconfig());
            Map<String, ProcessNode> nodes = new HashMap<>(Map.of("node-1", first));
            BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = commands.readLine(); line != null; line = commands.readLine()) {
                out.println(run(line.strip().split(" "), first, nodes));
            }
            nodes.remove("node-1");
            nodes.values().forEach(ProcessNode::close);
        }
    }

    private static @Nullable ContainerImage find(Image[] images, String name) {
        for (Image image : images) {
            if (image.matches(name)) {
                return image.image();
            }
        }
        return null;
    }

    private static String run(String[] command, ProcessNode first, Map<String, ProcessNode> nodes) throws IOException {
        if (command.length == 2 && command[0].equals("add")) {
            nodes.put(command[1], first.another(command[1]));
        } else if (command.length == 2
                && command[0].equals("lose")
                && nodes.get(command[1]) != null
                && nodes.get(command[1]) != first) {
            nodes.remove(command[1]).close();
        } else {
            return "not a command: " + String.join(" ", command);
        }
        return "done";
    }
}
