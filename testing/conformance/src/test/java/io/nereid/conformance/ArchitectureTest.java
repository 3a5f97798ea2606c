// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.fields;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.methods;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.NullMarked;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/**
 * Keeps docs/ARCHITECTURE.md true: which module may use which, which packages of a module other modules may see, and how large packages
 * and files may become.
 */
class ArchitectureTest {
    private static final JavaClasses CLASSES = new ClassFileImporter()
            .withImportOption(new ImportOption.DoNotIncludeTests())
            .importPackages("io.nereid");

    /**
     * A Maven module.
     *
     * @param name its folder
     * @param root its root package; everything below it belongs to the module
     * @param uses the names of the modules whose API packages it may use
     * @param api the packages that other modules may use
     */
    private record Module(String name, String root, Set<String> uses, Set<String> api) {}

    /**
     * The modules by layer, the lowest first: folder | root package | packages that other modules may use ("." is the root package) |
     * modules that it may use. Folders below foundation and serving are used by their last name.
     */
    private static final List<Module> MODULES = modules("""
        foundation/base | io.nereid.base | . access flatbuffers plugin |
        foundation/tensor | io.nereid.tensor | . | base
        foundation/json | io.nereid.json | . | base tensor
        foundation/observe | io.nereid.observe | . metrics | base tensor
        foundation/protobuf-lite | io.nereid.protobuf | . | base
        foundation/spi | io.nereid.spi | . config config.parameters management | base tensor observe
        foundation/device | io.nereid.device | . | base tensor observe
        foundation/backend | io.nereid.backend | . | base tensor observe spi device
        foundation/transport-api | io.nereid.transport.api | . access | base tensor
        foundation/storage-spi | io.nereid.storage.spi | . | base
        foundation/tfdata | io.nereid.tfdata | . | base tensor observe protobuf-lite spi
        serving/tracing | io.nereid.tracing | . | base tensor json observe
        serving/recording | io.nereid.recording | . | base tensor observe protobuf-lite spi tfdata
        serving/lifecycle | io.nereid.lifecycle | . policy waiters | base tensor observe spi
        serving/scheduling | io.nereid.scheduling | . admission execution factory objective | base tensor observe spi
        serving/repository | io.nereid.repository | . config layout polling problem tfserving | base tensor json \
            observe spi backend device
        serving/engine | io.nereid.engine | . options | base tensor observe protobuf-lite spi backend device tfdata \
            lifecycle scheduling repository
        backends/onnx | io.nereid.backends.onnx | . | base tensor observe protobuf-lite spi device backend
        backends/java | io.nereid.backends.java | . | base tensor observe spi backend
        backends/tokenizer | io.nereid.backends.tokenizer | . | base tensor observe spi backend
        backends/huggingface | io.nereid.backends.huggingface | . | base tensor json observe protobuf-lite spi backend \
            backends/tokenizer
        backends/sklearn | io.nereid.backends.sklearn | . | base tensor json observe spi backend
        backends/trees | io.nereid.backends.trees | . | base tensor json observe spi backend
        backends/catboost | io.nereid.backends.catboost | . | base tensor json observe spi backend
        backends/python | io.nereid.backends.python | . | base tensor json observe spi backend
        backends/tensorflow | io.nereid.backends.tensorflow | . | base tensor observe protobuf-lite spi backend
        backends/pytorch | io.nereid.backends.pytorch | . | base tensor observe spi backend
        backends/tflite | io.nereid.backends.tflite | . | base tensor observe spi backend
        backends/pmml | io.nereid.backends.pmml | . | base tensor observe spi backend
        backends/mlflow | io.nereid.backends.mlflow | . | base tensor observe spi backend
        backends/onnx-import | io.nereid.backends.onnximport |  | base tensor json observe protobuf-lite spi \
            backend
        backends/unsupported | io.nereid.backends.unsupported | . | base spi backend
        caches/redis | io.nereid.caches.redis | . | base backend
        devices/cuda | io.nereid.devices.cuda | . | base device
        protocols/v2 | io.nereid.protocols.v2 | . options transcoding | base tensor json observe device protobuf-lite \
            spi transport-api
        protocols/v1 | io.nereid.protocols.v1 | . common | base tensor json observe protobuf-lite spi \
            transport-api tfdata
        protocols/mlflow | io.nereid.protocols.mlflow | . | base tensor json observe spi transport-api
        protocols/openapi | io.nereid.protocols.openapi | . options | base tensor json spi transport-api
        control/api | io.nereid.control.api | . admission config schema store yaml | base
        control/core | io.nereid.control.core | . component languagemodel plan runtime trainedmodel | base control/api
        control/autoscaling | io.nereid.control.autoscaling | . | base control/api
        control/placement | io.nereid.control.placement | . | base control/autoscaling
        control/store | io.nereid.control.store | . | base control/api control/core
        control/apiserver | io.nereid.control.apiserver | . | base tensor transport-api control/api control/core
        control/gateway | io.nereid.control.gateway | . access activator upstream | base tensor json observe protobuf-lite spi \
            transport-api scheduling control/api control/core control/autoscaling
        control/graph | io.nereid.control.graph | . | base tensor transport-api control/api control/core
        serving/storage | io.nereid.storage | . request | base storage-spi
        storage/s3 | io.nereid.storage.s3 | . | base storage-spi
        control/plane | io.nereid.control.plane | . languagemodel loop reconcile trainedmodel | base control/api control/core
        control/local | io.nereid.control.local | . localmodel spi | base tensor json observe spi transport-api repository \
            control/api control/core control/plane control/autoscaling control/gateway storage
        transport | io.nereid.transport | . proxy server tls | base tensor transport-api
        control/kubernetes | io.nereid.control.kubernetes | . apply cluster crd knative localmodel manifest pod pool revision standard | base control/api control/core
        control/operator | io.nereid.control.operator | . access adopt gateway nodeagent upgrade webhook | base tensor observe transport-api transport control/api \
            control/core control/plane control/autoscaling control/placement control/gateway control/kubernetes
        serving/explain | io.nereid.explain | . request | base tensor json spi transport-api
        serving/transform | io.nereid.transform | . | base tensor json observe spi transport-api
        serving/payload | io.nereid.payload | . | base tensor observe transport-api
        serving/access | io.nereid.access | . audit config credential | base tensor observe spi transport-api
        apps/embedded | io.nereid.embedded | . micrometer opentelemetry | base tensor observe spi backend repository engine
        apps/embedded-server | io.nereid.embedded.server | . | base observe spi transport-api transport protocols/v2 protocols/v1 protocols/openapi apps/embedded
        testing/junit | io.nereid.junit | . | base spi apps/embedded apps/embedded-server
        testing/samples | io.nereid.samples | . | base tensor observe spi backend backends/java
        apps/client | io.nereid.client | . infer options | base protobuf-lite
        apps/spring-boot-autoconfigure | io.nereid.spring | embedded client test | base spi apps/embedded apps/client
        apps/spring-boot-starter | io.nereid.spring.boot4 | . | apps/embedded apps/client apps/spring-boot-autoconfigure
        apps/spring-boot3-starter | io.nereid.spring.boot3 | . | apps/embedded apps/client apps/spring-boot-autoconfigure
        apps/nereid | io.nereid.app | . | base device tensor json observe protobuf-lite spi backend transport-api \
            tfdata tracing recording lifecycle scheduling repository engine protocols/v2 protocols/v1 \
            protocols/mlflow protocols/openapi control/api control/core control/store control/apiserver control/gateway \
            control/graph storage storage-spi control/plane control/kubernetes control/operator control/local explain \
            transform payload access transport
        """);

    private static final int TYPES_PER_PACKAGE = 20;

    private static final int LINES_PER_FILE = 1000;

    /** Files over 600 lines, each with the reason why it is one idea that parts would not make clearer. */
    private static final Map<String, String> LONG_FILES = Map.ofEntries(
            Map.entry(
                    "Http1Connection", "one state machine: reading, dispatch, writing and keep-alive of a connection"),
            Map.entry("Http2ServerConnection", "one handler: streams, keep-alive, shutdown and errors of a connection"),
            Map.entry("GrpcServerCall", "one state machine: a gRPC call with flow control in both directions"),
            Map.entry("Worker", "both directions of the protocol with a Python worker process"),
            Map.entry("WriteHandler", "create, update, patch and delete share one path through admission"),
            Map.entry("PoolPlacement", "one owner: the state of a pool and every decision about it"),
            Map.entry("RevisionActivator", "one lock: waiting, limits and counts of a revision"),
            Map.entry("JsonReader", "one loop over bytes, unrolled by token for speed"),
            Map.entry("RepositorySource", "one lock: polls, loads and unloads of the models below the roots"),
            Map.entry("FileSystemStoragePathSource", "one source: plan, check and apply a model list"),
            Map.entry("DynamicBatcher", "one lock: the jobs, permits and runs of a model"),
            Map.entry(
                    "LatencyController",
                    "one controller: what it has learnt, and the decisions that depend on each other"),
            Map.entry("BasicManagerTest", "the cases of one test class of TensorFlow Serving, under their names"),
            Map.entry("GatewayServerTest", "the cases of one gateway beside a real API server, with one rig"),
            Map.entry("AccessControlTest", "the cases of one policy over all kinds of credentials, with one rig"),
            Map.entry("PooledUpstreamClientTest", "the cases of one client over sockets, with one rig"),
            Map.entry(
                    "RequestSmugglingTest", "one table of published shapes, with the rig that sends and records them"),
            Map.entry("SplitRequestTest", "the cases of one table of TensorFlow Serving's batching rules"));

    private static List<Module> modules(String table) {
        Map<String, String> folders = new HashMap<>();
        List<Module> modules = new ArrayList<>();
        for (String line : table.split("\n")) {
            String[] cells = (line + " ").split("\\|");
            String name = cells[0].strip();
            String root = cells[1].strip();
            folders.put(name, name);
            folders.put(name.replaceFirst("^(foundation|serving)/", ""), name);
            Set<String> api = words(cells[2].strip()).stream()
                    .map(p -> p.equals(".") ? root : root + "." + p)
                    .collect(Collectors.toSet());
            Set<String> uses = words(cells[3].strip()).stream()
                    .map(u -> Objects.requireNonNull(folders.get(u), u + " of " + name + " is not listed before it"))
                    .collect(Collectors.toCollection(TreeSet::new));
            modules.add(new Module(name, root, uses, api));
        }
        return List.copyOf(modules);
    }

    private static Set<String> words(String text) {
        return Arrays.stream(text.split(" ")).filter(w -> !w.isEmpty()).collect(Collectors.toCollection(TreeSet::new));
    }

    /** The module that a class belongs to: the one with the longest root that the package begins with; null for others. */
    private static Module moduleOf(JavaClass c) {
        String name = c.getPackageName() + ".";
        Module found = null;
        for (Module module : MODULES) {
            if (name.startsWith(module.root + ".") && (found == null || found.root.length() < module.root.length())) {
                found = module;
            }
        }
        return found;
    }

    @TestFactory
    List<DynamicTest> aModuleUsesOnlyTheModulesBelowIt() {
        Map<Module, Set<String>> violations = new HashMap<>();
        for (JavaClass c : CLASSES) {
            Module from = moduleOf(c);
            if (from == null || isGenerated(c)) {
                continue;
            }
            for (Dependency d : c.getDirectDependenciesFromSelf()) {
                Module to = moduleOf(d.getTargetClass().getBaseComponentType());
                if (to != null && to != from && !from.uses.contains(to.name)) {
                    violations.computeIfAbsent(from, m -> new TreeSet<>()).add(to.name + ": " + d.getDescription());
                }
            }
        }
        return MODULES.stream()
                .map(m -> DynamicTest.dynamicTest(
                        m.name,
                        () -> assertThat(violations.getOrDefault(m, Set.of()))
                                .as("%s may use %s; move what is shared to a lower module", m.name, m.uses)
                                .isEmpty()))
                .toList();
    }

    @Test
    void everyPackageBelongsToAModule() {
        Set<String> strays = new TreeSet<>();
        for (JavaClass c : CLASSES) {
            if (moduleOf(c) == null && !isTool(c)) {
                strays.add(c.getPackageName());
            }
        }
        assertThat(strays).as("packages of no module in the list above").isEmpty();
        assertThat(MODULES).hasSizeGreaterThan(40);
    }

    @Test
    void otherModulesSeeTheApiPackagesOnly() {
        Set<String> violations = new TreeSet<>();
        for (JavaClass c : CLASSES) {
            Module from = moduleOf(c);
            if (isGenerated(c)) {
                continue;
            }
            for (Dependency d : c.getDirectDependenciesFromSelf()) {
                JavaClass target = d.getTargetClass().getBaseComponentType();
                Module to = moduleOf(target);
                if (to != null && to != from && !to.api.contains(target.getPackageName()) && !isTool(c)) {
                    violations.add(c.getName() + " uses " + target.getName());
                }
            }
        }
        assertThat(violations)
                .as("uses of a package that its module does not offer; use its API, or move the type there")
                .isEmpty();
    }

    @Test
    void apiPackagesExist() {
        for (Module module : MODULES) {
            for (String api : module.api) {
                assertThat(CLASSES.containPackage(api)).as(api).isTrue();
            }
        }
    }

    @Test
    void packagesHaveNoCycles() {
        slices().matching("io.nereid.(**)").should().beFreeOfCycles().check(CLASSES);
    }

    @Test
    void packagesAreOfReadableSize() {
        Map<String, Set<String>> types = new TreeMap<>();
        for (JavaClass c : CLASSES) {
            if (c.isTopLevelClass() && !isGenerated(c) && !c.getSimpleName().equals("package-info")) {
                types.computeIfAbsent(c.getPackageName(), p -> new TreeSet<>()).add(c.getSimpleName());
            }
        }
        types.forEach((name, members) -> assertThat(members)
                .as("types of %s: a package is one concern; split it", name)
                .hasSizeLessThanOrEqualTo(TYPES_PER_PACKAGE));
    }

    @Test
    void packagesAreNullMarked() {
        Set<String> missing = new TreeSet<>();
        for (JavaClass c : CLASSES) {
            if (!isGenerated(c) && moduleOf(c) != null && !c.getPackage().isAnnotatedWith(NullMarked.class)) {
                missing.add(c.getPackageName());
            }
        }
        assertThat(missing)
                .as("packages without @NullMarked in a package-info.java")
                .isEmpty();
    }

    @Test
    void filesAreOfReadableLength() throws IOException {
        Map<String, Long> tooLong = new TreeMap<>();
        Set<String> unknown = new TreeSet<>(LONG_FILES.keySet());
        for (Path file : sources()) {
            long lines;
            try (Stream<String> all = Files.lines(file)) {
                lines = all.count();
            }
            String name = file.getFileName().toString().replace(".java", "");
            if (lines > LINES_PER_FILE || (lines > 600 && !LONG_FILES.containsKey(name))) {
                tooLong.put(name, lines);
            }
            if (lines > 600) {
                unknown.remove(name);
            }
        }
        assertThat(tooLong)
                .as("files of more than %s lines, or of more than 600 without a reason in LONG_FILES", LINES_PER_FILE)
                .isEmpty();
        assertThat(unknown)
                .as("files that LONG_FILES names and that are short or gone")
                .isEmpty();
    }

    private static List<Path> sources() throws IOException {
        Path root = Path.of("").toAbsolutePath();
        while (!Files.exists(root.resolve("mvnw"))) {
            root = root.getParent();
        }
        List<Path> found = new ArrayList<>();
        for (String top : List.of(
                "foundation",
                "serving",
                "backends",
                "caches",
                "storage",
                "protocols",
                "transport",
                "control",
                "apps",
                "testing")) {
            try (Stream<Path> files = Files.walk(root.resolve(top))) {
                files.filter(f -> f.toString().endsWith(".java"))
                        .filter(f -> f.toString().matches(".*/src/(main|test)/java/.*"))
                        .filter(f -> !f.toString().contains("/target/"))
                        .forEach(found::add);
            }
        }
        assertThat(found).hasSizeGreaterThan(1000);
        return found;
    }

    @Test
    void socketsAreInTransportAlone() {
        noClasses()
                .that(describe("are outside transport", c -> !isIn(c, "transport") && !isTool(c)))
                .should()
                .dependOnClassesThat(describe(
                        "are Netty beyond its buffers",
                        c -> c.getPackageName().startsWith("io.netty")
                                && !c.getPackageName().startsWith("io.netty.buffer")))
                .because("protocols and engine must not know how bytes travel; use io.nereid.transport.api")
                .check(CLASSES);
        noClasses()
                .that(describe(
                        "are outside transport and tensor",
                        c -> !isIn(c, "transport") && !isIn(c, "foundation/tensor") && !isTool(c)))
                .should()
                .dependOnClassesThat(resideInAnyPackage("io.netty.buffer.."))
                .because("memory is MemoryRegion everywhere else")
                .check(CLASSES);
    }

    @Test
    void librariesStayInTheirModules() {
        noClasses()
                .that(describe(
                        "are not a protocol",
                        c -> !c.getPackageName().startsWith("io.nereid.protocols") && !isGenerated(c) && !isTool(c)))
                .should()
                .dependOnClassesThat(resideInAnyPackage("com.google.protobuf.."))
                .because("generated messages belong to the protocols")
                .check(CLASSES);
        noClasses()
                .that()
                .resideOutsideOfPackage("io.nereid.app..")
                .should()
                .dependOnClassesThat(resideInAnyPackage("picocli.."))
                .because("the command line belongs to the application")
                .check(CLASSES);
        noClasses()
                .that(describe("are not the ONNX backend", c -> !isIn(c, "backends/onnx") && !isTool(c)))
                .should()
                .dependOnClassesThat(resideInAnyPackage("ai.onnxruntime.."))
                .because("native libraries belong to their backend")
                .check(CLASSES);
        noClasses()
                .that(describe(
                        "are not the TensorFlow backends",
                        c -> !isIn(c, "backends/tensorflow") && !isIn(c, "backends/tflite")))
                .should()
                .dependOnClassesThat(resideInAnyPackage("org.tensorflow..", "org.bytedeco.tensorflowlite.."))
                .because("native libraries belong to their backend")
                .check(CLASSES);
        noClasses()
                .that(describe(
                        "are not the TensorFlow backends or the driver of GPUs",
                        c -> !isIn(c, "backends/tensorflow")
                                && !isIn(c, "backends/tflite")
                                && !isIn(c, "devices/cuda")))
                .should()
                .dependOnClassesThat(resideInAnyPackage("org.bytedeco.."))
                .because("what calls native libraries belongs to their plugins")
                .check(CLASSES);
        noClasses()
                .that(describe("are not the driver of GPUs", c -> !isIn(c, "devices/cuda")))
                .should()
                .dependOnClassesThat(resideInAnyPackage("org.bytedeco.cuda.."))
                .because("CUDA is loaded on machines with a GPU only")
                .check(CLASSES);
        noClasses()
                .that(describe(
                        "are not PyTorch or the tokenizer",
                        c -> !isIn(c, "backends/pytorch") && !isIn(c, "backends/tokenizer")))
                .should()
                .dependOnClassesThat(resideInAnyPackage("ai.djl.."))
                .because("native libraries belong to their backend")
                .check(CLASSES);
    }

    @Test
    void staticFieldsAreConstants() {
        fields().that()
                .areDeclaredInClassesThat(describe(
                        "are ours", c -> !isGenerated(c) && c.getPackageName().startsWith("io.nereid")))
                .and()
                .areStatic()
                .should()
                .beFinal()
                .because("mutable statics cannot be owned")
                .check(CLASSES);
        methods()
                .that()
                .areDeclaredInClassesThat(describe("are ours", c -> !isGenerated(c)))
                .and()
                .areStatic()
                .should()
                .notHaveName("getInstance")
                .because("the application builds the object graph")
                .check(CLASSES);
    }

    @Test
    void threadsAreMadeInOnePlace() {
        noClasses()
                .that(describe(
                        "are outside base and the applications",
                        c -> !isIn(c, "foundation/base") && !isTool(c) && !isIn(c, "apps/nereid")))
                .should()
                .dependOnClassesThat(
                        describe("are Executors", c -> c.getName().equals("java.util.concurrent.Executors")))
                .orShould()
                .callConstructor(Thread.class, Runnable.class)
                .orShould()
                .callConstructor(Thread.class, Runnable.class, String.class)
                .because("threads have names and owners; use io.nereid.base.Threads")
                .check(CLASSES);
    }

    @Test
    void timeIsReadThroughTheClock() {
        noClasses()
                .that(describe("are outside base and tools", c -> !isIn(c, "foundation/base") && !isTool(c)))
                .should()
                .callMethod(System.class, "nanoTime")
                .orShould()
                .callMethod(System.class, "currentTimeMillis")
                .because("tests own the time; use io.nereid.base.Clock")
                .check(CLASSES);
    }

    @Test
    void errorsAreOfOneKind() {
        noClasses()
                .should()
                .beAssignableTo(describe(
                        "are subclasses of ServingException",
                        c -> c.isAssignableTo(ServingException.class) && !c.isEquivalentTo(ServingException.class)))
                .check(CLASSES);
        noClasses()
                .that(describe("are ours", c -> !isGenerated(c)))
                .should()
                .callConstructor(RuntimeException.class, String.class)
                .orShould()
                .callConstructor(RuntimeException.class, Throwable.class)
                .orShould()
                .callConstructor(RuntimeException.class)
                .because("ServingException has a code and a remedy")
                .check(CLASSES);
    }

    private static boolean isIn(JavaClass c, String module) {
        Module found = moduleOf(c);
        return found != null && found.name.equals(module);
    }

    /** The classes that protoc makes follow none of these rules. */
    private static boolean isGenerated(JavaClass c) {
        return c.getPackageName().startsWith("io.nereid.protocols.v2.proto");
    }

    private static boolean isTool(JavaClass c) {
        return c.getPackageName().startsWith("io.nereid.bench")
                || c.getPackageName().startsWith("io.nereid.testkit")
                || c.getPackageName().startsWith("io.nereid.conformance");
    }
}
