// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.app.process.Logging;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.kubernetes.cluster.KserveCatalog;
import io.nereid.control.operator.Operator;
import io.nereid.control.operator.OperatorOptions;
import io.nereid.control.operator.upgrade.UpgradeOptions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.logging.Level;
import java.util.stream.Stream;

/**
 * Starts an operator that carries out one service, with a small API server in this process, so that an archive of its classes
 * can be made where there is no cluster. Confined to one thread.
 */
public final class OperatorTraining {
    private static final int TIMEOUT_MILLIS = 10_000;

    private static final String SERVICE = """
            apiVersion: serving.kserve.io/v1beta1
            kind: InferenceService
            metadata: {name: iris, namespace: training, generation: 1, annotations: {serving.kserve.io/deploymentMode: Standard}}
            spec: {predictor: {model: {modelFormat: {name: sklearn}, storageUri: "gs://models/iris"}}}
            """;

    /** Where the JDK keeps TLS and certificates, which the small API server does not use. */
    private static final List<String> TLS = List.of(
            "com/sun/crypto/provider",
            "javax/net/ssl",
            "sun/security/ec",
            "sun/security/ssl",
            "sun/security/validator",
            "sun/security/x509");

    private OperatorTraining() {}

    /**
     * Returns the exit status: 0 when the service was carried out.
     *
     * @throws IOException when no port or no temporary file can be had
     */
    public static int run() throws IOException, InterruptedException {
        Logging.configure(Logging.Format.TEXT, Level.OFF);
        Path builtIn = Files.createTempDirectory("nereid-training");
        try (TrainingApiServer server = new TrainingApiServer()) {
            for (ObjectNode runtime : KserveCatalog.manifests()) {
                String name = runtime.path("metadata").path("name").asText() + ".yaml";
                Files.writeString(builtIn.resolve(name), runtime.toString());
            }
            server.add(ManifestReader.parse(SERVICE, "training").get(0));
            // Not a kubeconfig, to read which the client loads a class for each kind of Kubernetes: a pod has none.
            URI address = URI.create("http://127.0.0.1:" + server.port() + "/");
            OperatorOptions options = new OperatorOptions(
                    "training", Set.of(), "training", 0, builtIn, null, new UpgradeOptions("training", 1));
            try (KubernetesClient client = KubernetesClients.create(address, "none", "training", TIMEOUT_MILLIS);
                    KubernetesClient leases = KubernetesClients.create(address, "none", "training", TIMEOUT_MILLIS);
                    Operator operator = new Operator(options, client, leases, () -> {})) {
                operator.start();
                boolean done = server.awaitStatus();
                loadTls();
                return done ? 0 : 1;
            }
        } finally {
            try (Stream<Path> files = Files.list(builtIn)) {
                for (Path file : files.toList()) {
                    Files.delete(file);
                }
            }
            Files.delete(builtIn);
        }
    }

    private static void loadTls() {
        Path base = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("modules", "java.base");
        for (String folder : TLS) {
            if (!Files.isDirectory(base.resolve(folder))) {
                // It is in a module of its own in an older JDK.
                continue;
            }
            try (Stream<Path> files = Files.list(base.resolve(folder))) {
                files.map(file -> base.relativize(file).toString())
                        .filter(name -> name.endsWith(".class") && !name.endsWith("-info.class"))
                        .forEach(OperatorTraining::load);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    private static void load(String file) {
        String name = file.substring(0, file.length() - ".class".length()).replace('/', '.');
        try {
            Class<?> unused = Class.forName(name, false, ClassLoader.getPlatformClassLoader());
        } catch (ClassNotFoundException | LinkageError e) {
            // The archive is then without this class.
        }
    }
}
