// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes;

import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.dsl.base.ResourceDefinitionContext;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import java.util.stream.Stream;

/**
 * Measures the operator with many services: first as many Deployments, Services and HPAs without an operator, the same that it
 * makes, then the services, a quiet time, and a restart of the operator. Both on the same control plane, one after the other.
 * {@code testing/kubernetes/benchmark.sh} runs it.
 *
 * <p>Arguments: the distribution's folder, the number of services, and the length of the quiet time in seconds.
 */
public final class OperatorBenchmark {
    private static final ResourceDefinitionContext SERVICES =
            context("serving.kserve.io", "v1beta1", "InferenceService");
    private static final Clock CLOCK = Clock.system();
    private static final Duration LIMIT = Duration.ofMinutes(15);
    private static final int HEALTH_PORT = 18_081;

    private final Path distribution;
    private final int count;
    private final Duration quiet;
    private final Path directory;
    private final PrintStream out;

    private OperatorBenchmark(Path distribution, int count, Duration quiet, Path directory, PrintStream out) {
        this.distribution = distribution;
        this.count = count;
        this.quiet = quiet;
        this.directory = directory;
        this.out = out;
    }

    private static ResourceDefinitionContext context(String group, String version, String kind) {
        return new ResourceDefinitionContext.Builder()
                .withGroup(group)
                .withVersion(version)
                .withKind(kind)
                .withPlural(kind.toLowerCase(Locale.ROOT) + "s")
                .withNamespaced(true)
                .build();
    }

    /** Runs the benchmark and prints its figures. */
    public static void main(String[] args) throws Exception {
        Path directory = Files.createTempDirectory("operator-benchmark");
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        new OperatorBenchmark(
                        Path.of(args[0]),
                        Integer.parseInt(args[1]),
                        Duration.ofSeconds(Integer.parseInt(args[2])),
                        directory,
                        out)
                .run();
    }

    private void run() throws Exception {
        try (TestCluster cluster = TestCluster.start(directory.resolve("cluster"))) {
            String manifests = output("operator", "manifests", "--image", "nereid", "--no-webhook");
            Path file = directory.resolve("manifests.yaml");
            Files.writeString(file, manifests);
            cluster.kubectl("apply", "--server-side", "-f", file.toString());
            cluster.kubectl("delete", "deployment", "--all", "-n", "nereid");
            Path builtIn = builtIn(cluster);
            List<FakeNode> nodes = new ArrayList<>();
            // Each pod asks for a core, of which a node has 64.
            for (int i = 0; i <= count / 60; i++) {
                nodes.add(new FakeNode(cluster.client(), "node-" + i, "10.244." + i, PodRunner.READY));
            }
            try {
                double plain = plain(cluster.client(), objects(cluster, builtIn));
                line(String.format(
                        Locale.ROOT,
                        "%d plain Deployments, Services and HPAs: %.1f s until all are available",
                        count,
                        plain));
                services(cluster, builtIn, plain);
            } finally {
                nodes.forEach(FakeNode::close);
            }
        }
    }

    /** The Deployment, Service and HPA that the operator makes of one service, as text in which its name is that of the service. */
    private List<String> objects(TestCluster cluster, Path builtIn) throws Exception {
        KubernetesClient client = cluster.client();
        namespace(client, "sample");
        Process operator = operator(cluster, builtIn);
        try {
            client.genericKubernetesResources(SERVICES)
                    .inNamespace("sample")
                    .resource(client.getKubernetesSerialization()
                            .unmarshal(service("sample"), GenericKubernetesResource.class))
                    .create();
            until(
                    "the sample is ready",
                    () -> client.genericKubernetesResources(SERVICES).inNamespace("sample").list().getItems().stream()
                            .anyMatch(OperatorBenchmark::isReady));
            List<String> objects = new ArrayList<>();
            for (ResourceDefinitionContext kind : List.of(
                    context("", "v1", "Service"),
                    context("apps", "v1", "Deployment"),
                    context("autoscaling", "v2", "HorizontalPodAutoscaler"))) {
                GenericKubernetesResource object = client.genericKubernetesResources(kind)
                        .inNamespace("sample")
                        .withName("sample-predictor")
                        .require();
                object.setMetadata(new ObjectMetaBuilder()
                        .withName(object.getMetadata().getName())
                        .withLabels(object.getMetadata().getLabels())
                        .withAnnotations(object.getMetadata().getAnnotations())
                        .build());
                object.getAdditionalProperties().remove("status");
                if (object.get("spec") instanceof Map<?, ?> spec) {
                    // A Service gets an address of its own.
                    spec.remove("clusterIP");
                    spec.remove("clusterIPs");
                }
                objects.add(client.getKubernetesSerialization().asJson(object));
            }
            return objects;
        } finally {
            stop(operator);
            client.namespaces().withName("sample").delete();
        }
    }

    private double plain(KubernetesClient client, List<String> objects) throws Exception {
        until(
                "the namespace of the sample is gone",
                () -> client.namespaces().withName("sample").get() == null);
        namespace(client, "plain");
        Ready ready = new Ready(client, context("apps", "v1", "Deployment"), "plain", OperatorBenchmark::isAvailable);
        Map<String, Double> before = programs();
        long start = CLOCK.nanos();
        parallel(i -> {
            for (String object : objects) {
                GenericKubernetesResource tree = client.getKubernetesSerialization()
                        .unmarshal(object.replace("sample", "svc-" + i), GenericKubernetesResource.class);
                client.resource(tree).inNamespace("plain").create();
            }
        });
        ready.await();
        double seconds = seconds(start);
        line("plain: CPU-s " + difference(before, programs()));
        client.namespaces().withName("plain").delete();
        until(
                "the namespace is gone",
                () -> client.namespaces().withName("plain").get() == null);
        return seconds;
    }

    private void services(TestCluster cluster, Path builtIn, double plain) throws Exception {
        KubernetesClient client = cluster.client();
        namespace(client, "many");
        Process operator = operator(cluster, builtIn);
        try {
            until("the operator leads", () -> metric("nereid_operator_leader").getOrDefault("", 0.0) == 1);
            LockSupport.parkNanos(Duration.ofSeconds(5).toNanos());
            Map<String, Double> before = metric("nereid_operator_api_requests_total");
            double cpu = cpuSeconds(operator);
            Ready ready = new Ready(client, SERVICES, "many", OperatorBenchmark::isReady);
            Map<String, Double> programsBefore = programs();
            long start = CLOCK.nanos();
            parallel(i -> client.genericKubernetesResources(SERVICES)
                    .inNamespace("many")
                    .resource(client.getKubernetesSerialization()
                            .unmarshal(service("svc-" + i), GenericKubernetesResource.class))
                    .create());
            ready.await();
            double seconds = seconds(start);
            line("services: CPU-s " + difference(programsBefore, programs()));
            line(String.format(
                    Locale.ROOT,
                    "%d services: %.1f s until all are Ready, %.2f of the plain ones; operator %.1f CPU-s, peak %d MB",
                    count,
                    seconds,
                    seconds / plain,
                    cpuSeconds(operator) - cpu,
                    peakMegabytes(operator)));
            LockSupport.parkNanos(Duration.ofSeconds(10).toNanos());
            Map<String, Double> settled = metric("nereid_operator_api_requests_total");
            settled.forEach((request, number) -> line(String.format(
                    Locale.ROOT,
                    "  %-70s %.2f per service",
                    request,
                    (number - before.getOrDefault(request, 0.0)) / count)));
            line(String.format(
                    Locale.ROOT,
                    "  %.1f reconciliations per service",
                    metric("nereid_operator_reconciliations_total").getOrDefault("result=success", 0.0) / count));
            LockSupport.parkNanos(quiet.toNanos());
            line("requests in " + quiet.toSeconds() + " quiet seconds: "
                    + difference(settled, metric("nereid_operator_api_requests_total")));
        } finally {
            stop(operator);
        }
        long start = CLOCK.nanos();
        Process again = operator(cluster, builtIn);
        try {
            until(
                    "every service was looked at",
                    Duration.ofMillis(200),
                    () -> metric("nereid_operator_reconciliations_total").getOrDefault("result=success", 0.0) >= count);
            line(String.format(Locale.ROOT, "restart: every service was looked at after %.1f s", seconds(start)));
            LockSupport.parkNanos(Duration.ofSeconds(10).toNanos());
            line("restart: peak " + peakMegabytes(again) + " MB");
            line("restart: requests: " + metric("nereid_operator_api_requests_total"));
        } finally {
            stop(again);
        }
    }

    /** Counts the objects that are ready, by a watch: lists of so many would load the API server. */
    private final class Ready implements ResourceEventHandler<GenericKubernetesResource> {
        private final String what;
        private final Predicate<GenericKubernetesResource> test;
        private final Set<String> names = ConcurrentHashMap.newKeySet();
        private final SharedIndexInformer<GenericKubernetesResource> informer;

        Ready(
                KubernetesClient client,
                ResourceDefinitionContext kind,
                String namespace,
                Predicate<GenericKubernetesResource> test) {
            this.what = kind.getPlural() + " that are ready";
            this.test = test;
            this.informer = client.genericKubernetesResources(kind)
                    .inNamespace(namespace)
                    .inform(this);
        }

        void await() {
            until(count + " " + what, Duration.ofMillis(100), () -> names.size() == count);
            informer.stop();
        }

        @Override
        public void onAdd(GenericKubernetesResource object) {
            if (test.test(object)) {
                names.add(object.getMetadata().getName());
            } else {
                names.remove(object.getMetadata().getName());
            }
        }

        @Override
        public void onUpdate(GenericKubernetesResource before, GenericKubernetesResource now) {
            onAdd(now);
        }

        @Override
        public void onDelete(GenericKubernetesResource object, boolean unknown) {
            names.remove(object.getMetadata().getName());
        }
    }

    private static boolean isAvailable(GenericKubernetesResource deployment) {
        return deployment.getAdditionalProperties().get("status") instanceof Map<?, ?> status
                && status.get("availableReplicas") != null;
    }

    private static boolean isReady(GenericKubernetesResource service) {
        Object status = service.getAdditionalProperties().get("status");
        return status instanceof Map<?, ?> map
                && map.get("conditions") instanceof List<?> conditions
                && conditions.stream()
                        .anyMatch(c -> c instanceof Map<?, ?> condition
                                && "Ready".equals(condition.get("type"))
                                && "True".equals(condition.get("status")));
    }

    private static String service(String name) {
        return "{\"apiVersion\":\"serving.kserve.io/v1beta1\",\"kind\":\"InferenceService\",\"metadata\":{\"name\":\""
                + name
                + "\",\"annotations\":{\"serving.kserve.io/deploymentMode\":\"Standard\"}},\"spec\":{\"predictor\":"
                + "{\"model\":{\"modelFormat\":{\"name\":\"sklearn\"},\"storageUri\":\"gs://models/iris\"}}}}";
    }

    private static void namespace(KubernetesClient client, String name) {
        client.resource(new NamespaceBuilder()
                        .withNewMetadata()
                        .withName(name)
                        .endMetadata()
                        .build())
                .create();
    }

    private void line(String text) {
        out.append(text).append(System.lineSeparator());
    }

    private interface Step {
        void run(int i) throws Exception;
    }

    private void parallel(Step step) throws Exception {
        ThreadPoolExecutor threads = Threads.pool("benchmark", 8);
        try {
            List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                int number = i;
                all.add(threads.submit(() -> {
                    step.run(number);
                    return null;
                }));
            }
            for (Future<?> one : all) {
                one.get();
            }
        } finally {
            threads.shutdown();
        }
    }

    private String output(String... arguments) throws IOException, InterruptedException {
        Path file = directory.resolve("output");
        List<String> command =
                new ArrayList<>(List.of(distribution.resolve("bin/nereid").toString()));
        command.addAll(List.of(arguments));
        int code = new ProcessBuilder(command)
                .redirectOutput(file.toFile())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start()
                .waitFor();
        if (code != 0) {
            throw new IOException(String.join(" ", command) + " ended with " + code);
        }
        return Files.readString(file);
    }

    /** The files that a pod of the operator has mounted. */
    private Path builtIn(TestCluster cluster) throws IOException {
        Path folder = Files.createDirectories(directory.resolve("built-in"));
        Map<String, String> data = cluster.client()
                .configMaps()
                .inNamespace("nereid")
                .withName("nereid-built-in-resources")
                .get()
                .getData();
        for (Map.Entry<String, String> file : data.entrySet()) {
            Files.writeString(folder.resolve(file.getKey()), file.getValue());
        }
        return folder;
    }

    private Process operator(TestCluster cluster, Path builtIn) throws IOException {
        ProcessBuilder builder = new ProcessBuilder(
                distribution.resolve("bin/nereid").toString(),
                "operator",
                "--namespace=nereid",
                "--kubeconfig=" + cluster.kubeconfig(),
                "--built-in-resources=" + builtIn,
                "--health-port=" + HEALTH_PORT);
        return builder.redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(new File(directory.toFile(), "operator.log")))
                .start();
    }

    private static void stop(Process process) throws InterruptedException {
        process.destroy();
        if (!process.waitFor(30, TimeUnit.SECONDS)) {
            process.destroyForcibly();
        }
    }

    /** The samples of a family by their labels. */
    private static Map<String, Double> metric(String name) {
        Map<String, Double> samples = new TreeMap<>();
        try {
            String page = HttpClient.newHttpClient()
                    .send(
                            HttpRequest.newBuilder(URI.create("http://localhost:" + HEALTH_PORT + "/metrics"))
                                    .build(),
                            HttpResponse.BodyHandlers.ofString())
                    .body();
            page.lines().filter(line -> line.startsWith(name)).forEach(line -> {
                int space = line.lastIndexOf(' ');
                samples.put(
                        line.substring(name.length(), space).replaceAll("[{}\"]", ""),
                        Double.parseDouble(line.substring(space + 1)));
            });
        } catch (IOException e) {
            return samples;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return samples;
    }

    private static Map<String, Double> difference(Map<String, Double> before, Map<String, Double> now) {
        Map<String, Double> more = new TreeMap<>();
        now.forEach((request, number) -> {
            double added = number - before.getOrDefault(request, 0.0);
            if (added > 0) {
                more.put(request, added);
            }
        });
        return more;
    }

    private static double cpuSeconds(Process process) {
        return process.info().totalCpuDuration().orElse(Duration.ZERO).toMillis() / 1e3;
    }

    /** The processor time so far of each program of the control plane, and of this one, which plays the nodes. */
    private Map<String, Double> programs() throws IOException {
        Map<String, Double> seconds = new TreeMap<>();
        seconds.put("benchmark", cpuSeconds(ProcessHandle.current()));
        for (String program : List.of("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")) {
            String pid = Files.readString(directory.resolve("cluster/" + program + ".pid"))
                    .strip();
            ProcessHandle.of(Long.parseLong(pid)).ifPresent(process -> seconds.put(program, cpuSeconds(process)));
        }
        return seconds;
    }

    private static double cpuSeconds(ProcessHandle process) {
        return process.info().totalCpuDuration().orElse(Duration.ZERO).toMillis() / 1e3;
    }

    private static long peakMegabytes(Process process) throws IOException {
        try (Stream<String> lines = Files.lines(Path.of("/proc/" + process.pid() + "/status"))) {
            return lines.filter(line -> line.startsWith("VmHWM:"))
                    .mapToLong(line -> Long.parseLong(line.replaceAll("[^0-9]", "")) / 1024)
                    .findFirst()
                    .orElse(0);
        }
    }

    private static double seconds(long start) {
        return (CLOCK.nanos() - start) / 1e9;
    }

    private static void until(String what, BooleanSupplier condition) {
        until(what, Duration.ofSeconds(1), condition);
    }

    private static void until(String what, Duration pause, BooleanSupplier condition) {
        long end = CLOCK.nanos() + LIMIT.toNanos();
        while (!condition.getAsBoolean()) {
            if (CLOCK.nanos() > end) {
                throw new IllegalStateException("not within " + LIMIT.toMinutes() + " minutes: " + what);
            }
            LockSupport.parkNanos(pause.toNanos());
        }
    }
}
