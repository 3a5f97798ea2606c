// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import static io.nereid.control.operator.OperatorCluster.tree;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.kubernetes.cluster.KserveCatalog;
import io.nereid.control.operator.certificate.CertificateKeeper;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import io.nereid.testing.kubernetes.TestCluster;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * KServe's controller manager as a process beside a test cluster, with what an installation of KServe in Standard mode has: its
 * settings, its Deployment, and its webhooks, which the API server calls at an address of this machine.
 *
 * <p>The program comes from outside, in the environment variable {@code KSERVE_MANAGER}.
 */
final class KserveManager implements AutoCloseable {
    /** The namespace of KServe's controller. */
    static final String HOME = "kserve";

    /** The Deployment that the operator's command scales to 0. */
    static final String DEPLOYMENT = "kserve-controller-manager";

    private static final String SERVICES = "inferenceservice";

    private final ClusterClient client;
    private final Path directory;
    private final Process process;

    private KserveManager(ClusterClient client, Path directory, Process process) {
        this.client = client;
        this.directory = directory;
        this.process = process;
    }

    /**
     * Installs KServe and starts its manager; blocks until it is ready. What is installed already stays or is written again.
     *
     * @param binary the manager's program
     * @param definitions a file with KServe's definitions; null where those of the cluster are used
     * @param directory a folder for certificates and the log
     */
    static KserveManager start(
            TestCluster cluster, ClusterClient client, Path binary, @Nullable Path definitions, Path directory)
            throws IOException {
        if (definitions != null) {
            cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", definitions.toString());
            cluster.kubectl("wait", "--for=condition=Established", "--all", "customresourcedefinitions");
        }
        if (client.get(ResourceKinds.NAMESPACE, null, HOME) == null) {
            cluster.kubectl("create", "namespace", HOME);
        }
        settings(client, HOME);
        ObjectNode unused = client.apply(
                ClusterKinds.DEPLOYMENT,
                tree(
                        "{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'" + DEPLOYMENT
                                + "','namespace':'" + HOME
                                + "'},'spec':{'replicas':1,'selector':{'matchLabels':{'control-plane':'"
                                + DEPLOYMENT + "'}},'template':{'metadata':{'labels':{'control-plane':'" + DEPLOYMENT
                                + "'}},'spec':{'containers':[{'name':'manager','image':'kserve/kserve-controller:v0.20.0'}]}}}}"));
        int webhooks = free();
        int probes = free();
        certificates(client, directory);
        ProcessBuilder builder = new ProcessBuilder(
                binary.toString(),
                "--kubeconfig=" + cluster.kubeconfig(),
                "--webhook-port=" + webhooks,
                "--metrics-addr=0",
                "--health-probe-addr=127.0.0.1:" + probes);
        builder.environment().put("POD_NAMESPACE", HOME);
        builder.environment().put("TMPDIR", directory.toString());
        builder.redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(
                        directory.resolve("manager.log").toFile()));
        Process process = builder.start();
        // A JVM that is killed leaves no manager behind.
        Process watch = new ProcessBuilder(
                        "sh",
                        "-c",
                        "while kill -0 " + ProcessHandle.current().pid() + " && kill -0 " + process.pid()
                                + "; do sleep 1; done 2>/dev/null; kill " + process.pid() + " 2>/dev/null")
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .start();
        assertThat(watch.pid()).isPositive();
        KserveManager manager = new KserveManager(client, directory, process);
        manager.ready(probes);
        manager.webhooks(webhooks);
        return manager;
    }

    /** KServe's settings with the mode Standard. */
    static void settings(ClusterClient client, String namespace) {
        ObjectNode settings = KserveCatalog.settings();
        settings.withObjectProperty("deploy").put("defaultDeploymentMode", "Standard");
        KserveObjects.settings(client, namespace, settings);
    }

    /** The certificate is in a Secret of KServe's namespace; the manager reads it from a folder of the temporary directory. */
    private static void certificates(ClusterClient client, Path directory) throws IOException {
        trust(client, SERVICES + ".serving.kserve.io");
        ObjectNode secret = client.get(ResourceKinds.SECRET, HOME, CertificateKeeper.SECRET);
        Path folder = Files.createDirectories(directory.resolve("k8s-webhook-server/serving-certs"));
        for (String file : List.of("tls.crt", "tls.key")) {
            Files.write(
                    folder.resolve(file),
                    Base64.getDecoder().decode(secret.path("data").path(file).asText()));
        }
    }

    /** Makes the certificate, if there is none, and has the API server trust it in the configurations of a name. */
    private static void trust(ClusterClient client, String configuration) {
        try (CertificateKeeper keeper =
                new CertificateKeeper(client, Clock.system(), HOME, configuration, List.of("127.0.0.1"))) {
            keeper.maintain();
        }
    }

    /** The webhooks of an installation: defaults of services, pods, and the checks of each kind. */
    private void webhooks(int port) {
        ObjectNode mutating = configuration("Mutating", SERVICES);
        hook(mutating, port, SERVICES, "defaulter", "v1beta1");
        ObjectNode pods = hook(mutating, port, "pod", "pod-mutator", "v1");
        pods.put("name", SERVICES + ".kserve-webhook-server.pod-mutator").put("reinvocationPolicy", "IfNeeded");
        ((ObjectNode) pods.path("clientConfig")).put("url", "https://127.0.0.1:" + port + "/mutate-pods");
        ((ArrayNode) pods.at("/rules/0/apiGroups")).removeAll().add("");
        ((ArrayNode) pods.at("/rules/0/operations")).removeAll().add("CREATE");
        pods.set(
                "objectSelector",
                tree("{'matchExpressions':[{'key':'serving.kserve.io/inferenceservice','operator':'Exists'}]}"));
        ObjectNode unused = client.forceAs("kubectl", ClusterKinds.MUTATING_WEBHOOK_CONFIGURATION, mutating);
        for (String kind :
                List.of(SERVICES, "trainedmodel", "inferencegraph", "clusterservingruntime", "servingruntime")) {
            ObjectNode validating = configuration("Validating", kind);
            hook(validating, port, kind, "validator", kind.equals(SERVICES) ? "v1beta1" : "v1alpha1");
            unused = client.forceAs("kubectl", ClusterKinds.VALIDATING_WEBHOOK_CONFIGURATION, validating);
            trust(client, kind + ".serving.kserve.io");
        }
    }

    private static ObjectNode configuration(String type, String kind) {
        return tree("{'apiVersion':'admissionregistration.k8s.io/v1','kind':'" + type
                + "WebhookConfiguration','metadata':{'name':'" + kind + ".serving.kserve.io'},'webhooks':[]}");
    }

    private static ObjectNode hook(ObjectNode configuration, int port, String kind, String name, String version) {
        String path =
                (name.equals("validator") ? "/validate" : "/mutate") + "-serving-kserve-io-" + version + "-" + kind;
        ObjectNode hook = tree("{'name':'" + kind + ".kserve-webhook-server." + name
                + "','clientConfig':{'url':'https://127.0.0.1:" + port + path
                + "'},'failurePolicy':'Fail','sideEffects':'None','admissionReviewVersions':['v1beta1'],"
                + "'rules':[{'apiGroups':['serving.kserve.io'],'apiVersions':['" + version
                + "'],'operations':['CREATE','UPDATE'],'resources':['" + kind + "s']}]}");
        ((ArrayNode) configuration.path("webhooks")).add(hook);
        return hook;
    }

    private void ready(int port) {
        HttpClient http = HttpClient.newHttpClient();
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/readyz"))
                .build();
        BooleanSupplier answers = () -> {
            assertThat(process.isAlive())
                    .as("KServe's manager ended: %s", log())
                    .isTrue();
            try {
                return http.send(request, HttpResponse.BodyHandlers.discarding())
                                .statusCode()
                        == 200;
            } catch (IOException e) {
                return false;
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new AssertionError(e);
            }
        };
        KserveManagerTest.until("KServe's manager is ready: " + directory.resolve("manager.log"), answers);
    }

    /** The end of the manager's log. */
    String log() {
        try {
            String log = Files.readString(directory.resolve("manager.log"));
            return log.substring(Math.max(0, log.length() - 3000));
        } catch (IOException e) {
            return e.toString();
        }
    }

    /** A port that nothing listens on. */
    static int free() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    /** Stops the process, as the removal of its pod does; its webhooks stay, and answer no more. */
    @Override
    public void close() {
        process.destroy();
        try {
            if (!process.waitFor(30, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
