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

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.domain.JavaPackage;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.lang.ArchRule;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.NullMarked;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Keeps the picture in docs/ARCHITECTURE.md true. */
class ArchitectureTest {
    private static final JavaClasses HOUSE = new ClassFileImporter()
            .withImportOption(new ImportOption.DoNotIncludeTests())
            .importPackages("io.nereid");

    private static final String BASE = "io.nereid.base";
    private static final String TENSOR = "io.nereid.tensor";
    private static final String JSON = "io.nereid.json";
    private static final String OBSERVE = "io.nereid.observe";
    private static final String WIRE = "io.nereid.wire";
    private static final String TFDATA = "io.nereid.tfdata";
    private static final String SPI = "io.nereid.spi";
    private static final String BACKEND = "io.nereid.backend";
    private static final String ENDPOINT = "io.nereid.endpoint";

    /** Room → the rooms it may use. */
    private static final String API = "io.nereid.control.api";

    private static final String CORE = "io.nereid.control.core";
    private static final String AUTOSCALING = "io.nereid.control.autoscaling";
    private static final String GATEWAY = "io.nereid.control.gateway";

    private static final Map<String, List<String>> FLOORS = Map.ofEntries(
            Map.entry(BASE, List.of()),
            Map.entry(TENSOR, List.of(BASE)),
            Map.entry(JSON, List.of(BASE, TENSOR)),
            Map.entry(OBSERVE, List.of(BASE, TENSOR)),
            Map.entry(SPI, List.of(BASE, TENSOR, OBSERVE)),
            Map.entry(BACKEND, List.of(BASE, TENSOR, OBSERVE, SPI)),
            Map.entry(ENDPOINT, List.of(BASE, TENSOR)),
            Map.entry(WIRE, List.of(BASE)),
            Map.entry(TFDATA, List.of(BASE, TENSOR, OBSERVE, WIRE, SPI)),
            Map.entry("io.nereid.recording", List.of(BASE, TENSOR, OBSERVE, WIRE, SPI, TFDATA)),
            Map.entry("io.nereid.lifecycle", List.of(BASE, TENSOR, OBSERVE, SPI)),
            Map.entry("io.nereid.scheduling", List.of(BASE, TENSOR, OBSERVE, SPI)),
            Map.entry("io.nereid.repository", List.of(BASE, TENSOR, JSON, OBSERVE, SPI, BACKEND)),
            Map.entry(
                    "io.nereid.engine",
                    List.of(
                            BASE,
                            TENSOR,
                            OBSERVE,
                            SPI,
                            BACKEND,
                            WIRE,
                            TFDATA,
                            "io.nereid.lifecycle",
                            "io.nereid.scheduling",
                            "io.nereid.repository")),
            Map.entry("io.nereid.backends.onnx", List.of(BASE, TENSOR, OBSERVE, SPI, BACKEND)),
            Map.entry("io.nereid.backends.java", List.of(BASE, TENSOR, OBSERVE, SPI, BACKEND)),
            Map.entry("io.nereid.backends.tokenizer", List.of(BASE, TENSOR, OBSERVE, SPI, BACKEND)),
            Map.entry("io.nereid.backends.trees", List.of(BASE, TENSOR, JSON, OBSERVE, SPI, BACKEND)),
            Map.entry("io.nereid.backends.catboost", List.of(BASE, TENSOR, JSON, OBSERVE, SPI, BACKEND)),
            Map.entry("io.nereid.backends.pytorch", List.of(BASE, TENSOR, OBSERVE, SPI, BACKEND)),
            Map.entry("io.nereid.backends.tflite", List.of(BASE, TENSOR, OBSERVE, SPI, BACKEND)),
            Map.entry("io.nereid.backends.tensorflow", List.of(BASE, TENSOR, OBSERVE, SPI, BACKEND, WIRE)),
            Map.entry("io.nereid.backends.python", List.of(BASE, TENSOR, JSON, OBSERVE, SPI, BACKEND)),
            Map.entry("io.nereid.backends.pmml", List.of(BASE, TENSOR, OBSERVE, SPI, BACKEND)),
            Map.entry("io.nereid.backends.mlflow", List.of(BASE, TENSOR, JSON, OBSERVE, SPI, BACKEND)),
            Map.entry("io.nereid.protocols.mlflow", List.of(BASE, TENSOR, JSON, OBSERVE, SPI, ENDPOINT)),
            Map.entry("io.nereid.backends.sklearn", List.of(BASE, TENSOR, JSON, OBSERVE, SPI, BACKEND)),
            Map.entry("io.nereid.backends.caffe2", List.of(BASE, TENSOR, JSON, OBSERVE, SPI, BACKEND, WIRE)),
            Map.entry("io.nereid.backends.legacy", List.of(BASE, SPI, BACKEND)),
            Map.entry("io.nereid.caches.redis", List.of(BASE, BACKEND)),
            Map.entry("io.nereid.tracing", List.of(BASE, TENSOR, JSON, OBSERVE)),
            Map.entry("io.nereid.protocols.v1", List.of(BASE, TENSOR, JSON, OBSERVE, SPI, ENDPOINT, WIRE, TFDATA)),
            Map.entry("io.nereid.protocols.v2", List.of(BASE, TENSOR, JSON, OBSERVE, SPI, ENDPOINT, WIRE)),
            Map.entry("io.nereid.transport", List.of(BASE, TENSOR, ENDPOINT)),
            Map.entry("io.nereid.storage", List.of(BASE)),
            Map.entry("io.nereid.explain", List.of(BASE, TENSOR, JSON, SPI, ENDPOINT)),
            Map.entry("io.nereid.transform", List.of(BASE, TENSOR, JSON, OBSERVE, SPI, ENDPOINT)),
            Map.entry("io.nereid.payload", List.of(BASE, TENSOR, ENDPOINT)),
            Map.entry(API, List.of(BASE)),
            Map.entry(CORE, List.of(BASE, API)),
            Map.entry(AUTOSCALING, List.of(BASE)),
            Map.entry("io.nereid.control.store", List.of(BASE, API, CORE)),
            Map.entry("io.nereid.control.apiserver", List.of(BASE, TENSOR, ENDPOINT, API, CORE)),
            Map.entry(GATEWAY, List.of(BASE, TENSOR, JSON, OBSERVE, SPI, ENDPOINT, API, CORE, AUTOSCALING)),
            Map.entry("io.nereid.control.graph", List.of(BASE, TENSOR, ENDPOINT, API, CORE)),
            Map.entry(
                    "io.nereid.control.local",
                    List.of(
                            BASE,
                            TENSOR,
                            JSON,
                            OBSERVE,
                            SPI,
                            ENDPOINT,
                            "io.nereid.repository",
                            "io.nereid.storage",
                            API,
                            CORE,
                            AUTOSCALING,
                            GATEWAY)));

    @TestFactory
    List<DynamicTest> everyRoomUsesOnlyTheRoomsBelowIt() {
        List<DynamicTest> tests = new ArrayList<>();
        FLOORS.forEach((room, allowed) -> tests.add(DynamicTest.dynamicTest(room, () -> {
            ArchRule rule = noClasses()
                    .that()
                    .resideInAPackage(room)
                    .should()
                    .dependOnClassesThat(describe(
                            "are rooms other than " + allowed,
                            c -> c.getPackageName().startsWith("io.nereid.")
                                    && !c.getPackageName().equals(room)
                                    && !allowed.contains(c.getPackageName())
                                    && !isGenerated(c)))
                    .because("arrows point down only; move what is shared to a floor below");
            rule.check(HOUSE);
        })));
        return tests;
    }

    @Test
    void everyRoomIsInThePicture() {
        List<String> rooms = new ArrayList<>();
        for (JavaClass c : HOUSE) {
            String name = c.getPackageName();
            if (!rooms.contains(name)
                    && !isGenerated(c)
                    && !name.equals("io.nereid.app")
                    && !name.startsWith("io.nereid.bench")
                    && !name.startsWith("io.nereid.testkit")) {
                rooms.add(name);
            }
        }
        assertThat(rooms).hasSizeGreaterThan(10).isSubsetOf(FLOORS.keySet());
    }

    @Test
    void socketsAreInTransportAlone() {
        noClasses()
                .that(describe(
                        "are outside transport", c -> !c.getPackageName().equals("io.nereid.transport") && !isTool(c)))
                .should()
                .dependOnClassesThat(describe(
                        "are Netty beyond its buffers",
                        c -> c.getPackageName().startsWith("io.netty")
                                && !c.getPackageName().startsWith("io.netty.buffer")))
                .because("protocols and engine must not know how bytes travel; use io.nereid.endpoint")
                .check(HOUSE);
        noClasses()
                .that(describe(
                        "are outside transport and tensor",
                        c -> !c.getPackageName().equals("io.nereid.transport")
                                && !c.getPackageName().equals(TENSOR)
                                && !isTool(c)))
                .should()
                .dependOnClassesThat(resideInAnyPackage("io.netty.buffer.."))
                .because("memory is MemoryRegion everywhere else")
                .check(HOUSE);
    }

    @Test
    void librariesStayInTheirRooms() {
        noClasses()
                .that(describe(
                        "are no protocol",
                        c -> !c.getPackageName().startsWith("io.nereid.protocols") && !isGenerated(c) && !isTool(c)))
                .should()
                .dependOnClassesThat(resideInAnyPackage("com.google.protobuf.."))
                .because("generated messages belong to the wire")
                .check(HOUSE);
        noClasses()
                .that()
                .resideOutsideOfPackage("io.nereid.app..")
                .should()
                .dependOnClassesThat(resideInAnyPackage("picocli.."))
                .because("the command line is the roof's")
                .check(HOUSE);
        noClasses()
                .that(describe(
                        "are not the ONNX backend",
                        c -> !c.getPackageName().startsWith("io.nereid.backends.onnx") && !isTool(c)))
                .should()
                .dependOnClassesThat(resideInAnyPackage("ai.onnxruntime.."))
                .because("natives belong to their backend")
                .check(HOUSE);
        noClasses()
                .that()
                .resideOutsideOfPackages("io.nereid.backends.tensorflow", "io.nereid.backends.tflite")
                .should()
                .dependOnClassesThat(resideInAnyPackage("org.tensorflow..", "org.bytedeco.."))
                .because("natives belong to their backend")
                .check(HOUSE);
        noClasses()
                .that()
                .resideOutsideOfPackages("io.nereid.backends.pytorch", "io.nereid.backends.tokenizer")
                .should()
                .dependOnClassesThat(resideInAnyPackage("ai.djl.."))
                .because("natives belong to their backend")
                .check(HOUSE);
    }

    @Test
    void packagesHaveNoCycles() {
        slices().matching("io.nereid.(**)").should().beFreeOfCycles().check(HOUSE);
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
                .check(HOUSE);
        methods()
                .that()
                .areDeclaredInClassesThat(describe("are ours", c -> !isGenerated(c)))
                .and()
                .areStatic()
                .should()
                .notHaveName("getInstance")
                .because("the roof builds the object graph")
                .check(HOUSE);
    }

    @Test
    void threadsAreMadeInOnePlace() {
        noClasses()
                .that(describe(
                        "are outside base and the roofs",
                        c -> !c.getPackageName().equals(BASE)
                                && !isTool(c)
                                && !c.getPackageName().equals("io.nereid.app")))
                .should()
                .dependOnClassesThat(
                        describe("are Executors", c -> c.getName().equals("java.util.concurrent.Executors")))
                .orShould()
                .callConstructor(Thread.class, Runnable.class)
                .orShould()
                .callConstructor(Thread.class, Runnable.class, String.class)
                .because("threads have names and owners; use io.nereid.base.Threads")
                .check(HOUSE);
    }

    @Test
    void timeIsReadThroughTheClock() {
        noClasses()
                .that(describe(
                        "are outside base and tools", c -> !c.getPackageName().equals(BASE) && !isTool(c)))
                .should()
                .callMethod(System.class, "nanoTime")
                .orShould()
                .callMethod(System.class, "currentTimeMillis")
                .because("tests own the time; use io.nereid.base.Clock")
                .check(HOUSE);
    }

    @Test
    void errorsAreOfOneKind() {
        noClasses()
                .should()
                .beAssignableTo(describe(
                        "are subclasses of ServingException",
                        c -> c.isAssignableTo(ServingException.class) && !c.isEquivalentTo(ServingException.class)))
                .check(HOUSE);
        noClasses()
                .that(describe("are ours", c -> !isGenerated(c)))
                .should()
                .callConstructor(RuntimeException.class, String.class)
                .orShould()
                .callConstructor(RuntimeException.class, Throwable.class)
                .orShould()
                .callConstructor(RuntimeException.class)
                .because("ServingException has a code and a remedy")
                .check(HOUSE);
    }

    @Test
    void roomsAreSmallAndNullMarked() {
        for (String room : FLOORS.keySet()) {
            JavaPackage javaPackage = HOUSE.getPackage(room);
            assertThat(javaPackage.getClasses().stream()
                            .filter(c -> c.getModifiers().contains(JavaModifier.PUBLIC))
                            .filter(c -> c.getName().indexOf('$') < 0 && !c.isArray() && !isGenerated(c))
                            .map(JavaClass::getSimpleName))
                    .as("public types of " + room)
                    .hasSizeBetween(1, 15);
            assertThat(javaPackage.isAnnotatedWith(NullMarked.class))
                    .as(room + " is @NullMarked")
                    .isTrue();
        }
    }

    /** Classes made by protoc follow no rule of ours. */
    private static boolean isGenerated(JavaClass c) {
        return c.getPackageName().startsWith("io.nereid.protocols.v2.proto");
    }

    private static boolean isTool(JavaClass c) {
        return c.getPackageName().startsWith("io.nereid.bench")
                || c.getPackageName().startsWith("io.nereid.testkit")
                || c.getPackageName().startsWith("io.nereid.conformance");
    }
}
