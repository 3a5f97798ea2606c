// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.jar.JarFile;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Element;
import org.w3c.dom.Node;
import org.w3c.dom.NodeList;
import org.xml.sax.SAXException;

/**
 * What users of Maven and Gradle get: which modules are published, under which names, and what they bring. build/release/maven.py looks at
 * the files themselves.
 */
class PublishedModulesTest {
    private static final Path ROOT = BuiltDistribution.top();

    private static final Pattern MODULE_NAME = Pattern.compile("[a-z][a-z0-9]*(\\.[a-z][a-z0-9]*)+");
    private static final Pattern PACKAGE = Pattern.compile("^package ([\\w.]+);", Pattern.MULTILINE);

    /** Loggers are the choice of who embeds: none of these may be a dependency of a published module. */
    private static final Pattern LOGGING_BACKEND = Pattern.compile(
            "(ch\\.qos\\.logback|log4j|commons-logging):.*|org\\.slf4j:(slf4j-(?!api$)|jcl-over|log4j-over).*"
                    + "|org\\.apache\\.logging\\.log4j:log4j-(core|slf4j).*");

    /**
     * A module of the root pom.
     *
     * @param folder its folder below the root
     * @param published whether it is in the Maven repository of a release
     * @param moduleName the name for Java's module system; null if there is none
     * @param dependencies {@code group:artifact} of what its users get
     */
    private record Module(
            String folder,
            String artifact,
            String packaging,
            boolean published,
            @Nullable String moduleName,
            List<String> dependencies) {
        boolean isJar() {
            return packaging.equals("jar");
        }
    }

    private final List<Module> modules = modules();

    private static List<Module> modules() {
        List<Module> found = new ArrayList<>();
        for (Element entry : children(child(pom(ROOT.resolve("pom.xml")), "modules"))) {
            String folder = entry.getTextContent();
            Element pom = pom(ROOT.resolve(folder).resolve("pom.xml"));
            Element properties = child(pom, "properties");
            List<String> dependencies = new ArrayList<>();
            for (Element dependency : children(child(pom, "dependencies"))) {
                String scope = text(dependency, "scope");
                if (scope == null || scope.equals("compile") || scope.equals("runtime")) {
                    dependencies.add(text(dependency, "groupId") + ":" + text(dependency, "artifactId"));
                }
            }
            found.add(new Module(
                    folder,
                    Objects.requireNonNull(text(pom, "artifactId")),
                    Objects.requireNonNullElse(text(pom, "packaging"), "jar"),
                    !"true".equals(text(properties, "maven.deploy.skip")),
                    text(properties, "module.name"),
                    dependencies));
        }
        return found;
    }

    private Set<String> artifacts() {
        return modules.stream()
                .filter(m -> m.published && m.isJar())
                .map(Module::artifact)
                .collect(Collectors.toCollection(TreeSet::new));
    }

    @Test
    void theBomNamesEveryPublishedModuleAndNoOther() {
        Element bom = pom(ROOT.resolve("build/bom/pom.xml"));
        List<String> named = new ArrayList<>();
        for (Element dependency : children(child(child(bom, "dependencyManagement"), "dependencies"))) {
            assertThat(text(dependency, "groupId")).isEqualTo("io.nereid");
            assertThat(text(dependency, "version")).isEqualTo("${project.version}");
            named.add(text(dependency, "artifactId"));
        }
        assertThat(named)
                .as("build/bom/pom.xml, against the modules of pom.xml whose poms do not have maven.deploy.skip; "
                        + "add the module there, or set the property in its pom")
                .containsExactlyElementsOf(artifacts())
                .contains("nereid-engine", "nereid-backend-onnx", "nereid-testkit")
                .doesNotContain("nereid-app", "nereid-conformance");
    }

    @Test
    void aPublishedModuleNeedsPublishedModulesOnly() {
        Set<String> there = artifacts();
        Set<String> wrong = new TreeSet<>();
        for (Module module : modules) {
            for (String dependency : module.published ? module.dependencies : List.<String>of()) {
                if (dependency.startsWith("io.nereid:")
                        && !there.contains(dependency.substring("io.nereid:".length()))) {
                    wrong.add(module.folder + " uses " + dependency);
                }
            }
        }
        assertThat(wrong).as("dependencies that a user could not resolve").isEmpty();
    }

    @Test
    void noPublishedModuleBringsALoggingBackend() {
        Set<String> wrong = new TreeSet<>();
        for (Module module : modules) {
            for (String dependency : module.published ? module.dependencies : List.<String>of()) {
                if (LOGGING_BACKEND.matcher(dependency).matches()) {
                    wrong.add(module.folder + " brings " + dependency);
                }
            }
        }
        assertThat(wrong).as("embedders choose their logging backend").isEmpty();
        assertThat("org.slf4j:slf4j-jdk14").matches(LOGGING_BACKEND);
        assertThat("org.slf4j:slf4j-api").doesNotMatch(LOGGING_BACKEND);
    }

    @Test
    void aModuleHasTheNameOfItsRootPackage() throws IOException {
        Map<String, String> names = new TreeMap<>();
        for (Module module : modules) {
            if (!module.isJar()) {
                continue;
            }
            String name = module.moduleName;
            assertThat(name)
                    .as("the property module.name of %s/pom.xml: the root package", module.folder)
                    .isNotNull()
                    .matches(MODULE_NAME);
            assertThat(names.put(Objects.requireNonNull(name), module.folder))
                    .as("another module with the name %s of %s", name, module.folder)
                    .isNull();
            if (module.published) {
                assertThat(packages(module))
                        .as("packages of %s: below %s", module.folder, name)
                        .isNotEmpty()
                        .allMatch(p -> (p + ".").startsWith(name + "."));
            }
        }
    }

    @Test
    void aPackageBelongsToOnePublishedModule() throws IOException {
        Map<String, String> owners = new TreeMap<>();
        for (Module module : modules) {
            for (String name : module.published && module.isJar() ? packages(module) : Set.<String>of()) {
                assertThat(owners.put(name, module.folder))
                        .as("another module with the package %s of %s", name, module.folder)
                        .isNull();
            }
        }
        assertThat(owners).hasSizeGreaterThan(100);
    }

    @Test
    void theJarsHaveTheirModuleNames() throws IOException {
        Map<String, String> names = modules.stream()
                .filter(Module::isJar)
                .collect(Collectors.toMap(Module::artifact, m -> Objects.requireNonNull(m.moduleName)));
        Path lib = BuiltDistribution.directory("module names of the jars").resolve("lib");
        int seen = 0;
        try (Stream<Path> files = Files.list(lib)) {
            for (Path file : files.filter(f -> f.getFileName().toString().startsWith("nereid-"))
                    .toList()) {
                Matcher artifact = Pattern.compile("(nereid(?:-[a-z]\\w*)+)-\\d.*\\.jar")
                        .matcher(file.getFileName().toString());
                assertThat(artifact.matches()).as("%s", file).isTrue();
                try (JarFile jar = new JarFile(file.toFile())) {
                    assertThat(jar.getManifest().getMainAttributes().getValue("Automatic-Module-Name"))
                            .as("the module name of %s", file)
                            .isEqualTo(names.get(artifact.group(1)));
                }
                seen++;
            }
        }
        assertThat(seen).isGreaterThan(30);
    }

    @Test
    void theExamplesUseTheVersionOfTheBuild() throws IOException {
        String version = Objects.requireNonNull(text(pom(ROOT.resolve("pom.xml")), "version"));
        Path embedding = ROOT.resolve("examples/embedding");
        Element properties = child(pom(embedding.resolve("maven/pom.xml")), "properties");
        assertThat(text(properties, "nereid.version")).isEqualTo(version);
        Element application = pom(embedding.resolve("spring-boot/pom.xml"));
        assertThat(text(child(application, "properties"), "nereid.version")).isEqualTo(version);
        assertThat(text(child(application, "parent"), "version"))
                .isEqualTo(text(child(pom(ROOT.resolve("pom.xml")), "properties"), "spring-boot.version"));
        String gradle = Files.readString(embedding.resolve("gradle/build.gradle.kts"));
        assertThat(gradle).contains("gradleProperty(\"nereid.version\").getOrElse(\"" + version + "\")");
        // Both builds have the same libraries beside Nereid.
        assertThat(gradle)
                .contains("slf4j-simple:" + text(properties, "slf4j.version") + "\"")
                .contains("junit-jupiter:" + text(properties, "junit.version") + "\"");
    }

    /** The packages of a module's main code. */
    private static Set<String> packages(Module module) throws IOException {
        Set<String> found = new TreeSet<>();
        try (Stream<Path> files = Files.walk(ROOT.resolve(module.folder).resolve("src/main/java"))) {
            for (Path file : files.filter(f -> f.toString().endsWith(".java")).toList()) {
                Matcher matcher = PACKAGE.matcher(Files.readString(file));
                assertThat(matcher.find()).as("%s has a package", file).isTrue();
                found.add(matcher.group(1));
            }
        }
        return found;
    }

    private static Element pom(Path file) {
        try {
            return DocumentBuilderFactory.newInstance()
                    .newDocumentBuilder()
                    .parse(file.toFile())
                    .getDocumentElement();
        } catch (IOException | SAXException | ParserConfigurationException e) {
            throw new IllegalStateException(file + " cannot be read", e);
        }
    }

    private static List<Element> children(@Nullable Element parent) {
        List<Element> found = new ArrayList<>();
        if (parent != null) {
            NodeList nodes = parent.getChildNodes();
            for (int i = 0; i < nodes.getLength(); i++) {
                Node node = nodes.item(i);
                if (node instanceof Element element) {
                    found.add(element);
                }
            }
        }
        return found;
    }

    private static @Nullable Element child(@Nullable Element parent, String name) {
        for (Element element : children(parent)) {
            if (element.getTagName().equals(name)) {
                return element;
            }
        }
        return null;
    }

    private static @Nullable String text(@Nullable Element parent, String name) {
        Element found = child(parent, name);
        return found == null ? null : found.getTextContent().strip();
    }
}
