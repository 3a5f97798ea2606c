// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.plugins;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.app.Main;
import io.nereid.app.plugins.PluginManifest.Artifact;
import io.nereid.app.plugins.PluginManifest.KnownBackend;
import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.CacheStoreProvider;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ApiVersion;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.Engine;
import io.nereid.engine.options.CacheOptions;
import io.nereid.engine.options.EngineOptions;
import io.nereid.repository.layout.BackendSelector;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.storage.Storage;
import io.nereid.storage.request.ProgressListener;
import io.nereid.storage.request.StorageLease;
import io.nereid.storage.request.StorageOptions;
import io.nereid.storage.request.StorageRequest;
import io.nereid.storage.spi.StorageProvider;
import io.nereid.testkit.PluginJarBuilder;
import java.io.ByteArrayOutputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class PluginsTest {
    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    @TempDir
    Path directory;

    private Path plugins;
    private Path repository;
    private PluginManifest plugin;

    @BeforeEach
    void aPluginOfTwoLibraries() throws Exception {
        plugins = directory.resolve("plugins");
        repository = directory.resolve("repository");
        plugin = new PluginManifest(
                "sample",
                "A sample",
                "Apache-2.0",
                List.of(new KnownBackend("sample", List.of("sample_model"), List.of("model.sample"), List.of())),
                List.of(),
                List.of(),
                List.of(),
                "",
                "",
                0,
                List.of(artifact("one", "", "the first"), artifact("two", "linux-x86_64", "the second")));
    }

    private Artifact artifact(String name, String classifier, String text) throws Exception {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        Artifact artifact = new Artifact(
                "org.sample",
                name,
                "1.0",
                classifier,
                bytes.length,
                HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes)));
        Path file = repository.resolve(artifact.path());
        Files.createDirectories(file.getParent());
        Files.write(file, bytes);
        return artifact;
    }

    private PluginInstaller installer(boolean offline, Path... local) {
        return new PluginInstaller(
                List.of(local), repository.toUri().toString(), offline, new PrintWriter(err, true), false);
    }

    private List<String> plugins() throws Exception {
        try (var inside = Files.walk(plugins)) {
            return inside.filter(Files::isRegularFile)
                    .map(p -> plugins.relativize(p).toString())
                    .sorted()
                    .toList();
        }
    }

    @Test
    void whatIsFetchedLiesInADirectoryOfThePluginsName() throws Exception {
        assertThat(installer(false).install(plugin, plugins)).isEqualTo(plugins.resolve("sample"));
        assertThat(plugins()).containsExactly("sample/one-1.0.jar", "sample/two-1.0-linux-x86_64.jar");
        assertThat(PluginInstaller.damage(plugin, plugins.resolve("sample"))).isNull();
        Files.writeString(plugins.resolve("sample/one-1.0.jar"), "cut");
        assertThat(PluginInstaller.damage(plugin, plugins.resolve("sample"))).contains("one-1.0.jar has 3 bytes");
        installer(false).install(plugin, plugins);
        assertThat(PluginInstaller.damage(plugin, plugins.resolve("sample"))).isNull();
        assertThat(plugins()).hasSize(2);
    }

    @Test
    void whatIsUnpackedBesideTheJarsIsFoundAsAFile() throws Exception {
        Path own = installer(false).install(plugin, plugins);
        Path library = Files.createDirectories(own.resolve("native/org/sample/linux-x86_64"))
                .resolve("libsample.so");
        Files.writeString(library, "a library");
        Files.writeString(own.resolve("one-1.0.jar"), "less");
        assertThat(PluginInstaller.damage(plugin, own)).isNull();
        Files.delete(own.resolve("two-1.0-linux-x86_64.jar"));
        assertThat(PluginInstaller.damage(plugin, own)).isEqualTo("two-1.0-linux-x86_64.jar is missing");

        Path other = Files.createDirectories(plugins.resolve("other"));
        jar(other.resolve("sample.jar"), Sample.class);
        Files.move(own.resolve("native"), other.resolve("native"));
        Backend backend = PluginLoader.load(new PluginDirectories(plugins, null), "other", other)
                .of(PluginKind.BACKEND, Backend.class)
                .get(0);
        assertThat(backend.getClass().getResource("/org/sample/linux-x86_64/libsample.so"))
                .hasProtocol("file")
                .hasPath(other.resolve("native/org/sample/linux-x86_64/libsample.so")
                        .toString());
    }

    @Test
    void aWrongChecksumInstallsNothing() throws Exception {
        Files.writeString(repository.resolve(plugin.artifacts().get(1).path()), "the sekond");
        assertThatThrownBy(() -> installer(false).install(plugin, plugins))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.DATA_LOSS);
                    assertThat(e.describe()).contains("SHA-256").contains("do not trust");
                });
        assertThat(plugins()).isEmpty();
        try (var left = Files.list(plugins)) {
            assertThat(left).isEmpty();
        }
    }

    @Test
    void aFailureLeavesWhatWasThere() throws Exception {
        installer(false).install(plugin, plugins);
        Files.delete(repository.resolve(plugin.artifacts().get(1).path()));
        assertThatThrownBy(() -> installer(false).install(plugin, plugins))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.describe()).contains("--repository"));
        assertThat(PluginInstaller.damage(plugin, plugins.resolve("sample"))).isNull();
        assertThat(plugins()).hasSize(2);
    }

    @Test
    void whatIsThereAlreadyIsNotFetched() throws Exception {
        Path flat = Files.createDirectories(directory.resolve("flat"));
        for (Artifact artifact : plugin.artifacts()) {
            Files.move(repository.resolve(artifact.path()), flat.resolve(artifact.fileName()));
        }
        installer(true, flat).install(plugin, plugins);
        assertThat(plugins()).hasSize(2);
        assertThat(err.toString()).contains("one-1.0.jar").contains("from " + flat);
        // A copy with a wrong checksum is skipped.
        Files.writeString(flat.resolve("one-1.0.jar"), "the thirst");
        assertThatThrownBy(() -> installer(true, flat).install(plugin, plugins))
                .isInstanceOfSatisfying(
                        ServingException.class,
                        e -> assertThat(e.describe()).contains("is not in").contains("org/sample/one/1.0/one-1.0.jar"));
    }

    @Test
    void theManifestIsWhatTheBuildUses() {
        for (PluginManifest each : PluginManifest.all()) {
            assertThat(each.kinds()).as(each.name()).isNotEmpty();
            // Its jars are all of the distribution's.
            assertThat(each.artifacts().isEmpty())
                    .as(each.name())
                    .isEqualTo(each.name().equals("onnx-import"));
            assertThat(each.artifacts()).allSatisfy(a -> {
                assertThat(a.version()).matches("[0-9][0-9A-Za-z.-]*");
                assertThat(a.sha256()).matches("[0-9a-f]{64}");
                assertThat(a.bytes()).isPositive();
            });
        }
        assertThatThrownBy(() -> PluginManifest.named("tensorfow"))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.describe()).contains("tensorflow"));
        assertThatThrownBy(() -> PluginManifest.named("paddle"))
                .isInstanceOfSatisfying(
                        ServingException.class,
                        e -> assertThat(e.describe()).contains("'paddle' is in the plugin 'onnx-import'"));
    }

    @Test
    void librariesOfABackendAreOfferedToItAndProvideNothing() throws Exception {
        PluginManifest known = PluginManifest.named("onnxruntime-cuda");
        assertThat(known.kinds()).containsExactly(PluginKind.LIBRARIES);
        assertThat(known.needs()).contains("libcudart.so.12").contains("the plugin cuda");
        String property = known.libraries();
        PluginDirectories places = new PluginDirectories(plugins, null);
        Path own = Files.createDirectories(plugins.resolve(known.name()));
        try {
            assertThatThrownBy(() -> PluginLoader.load(places, known.name(), own))
                    .hasMessageContaining(known.artifacts().get(0).fileName() + " is missing");
            PluginLoader.offerLibraries(places);
            assertThat(System.getProperty(property)).isNull();
            // As in an image: the jar without its libraries, which lie beside it.
            Files.createDirectories(own.resolve("native"));
            Files.writeString(own.resolve(known.artifacts().get(0).fileName()), "");
            PluginLoader.offerLibraries(places);
            assertThat(System.getProperty(property)).isEqualTo(own.toString());
            assertThat(PluginLoader.load(places, known.name(), own).providers()).containsOnlyKeys(PluginKind.LIBRARIES);
            assertThat(InstalledPlugins.load(places).deviceProviders()).isEmpty();
        } finally {
            System.clearProperty(property);
        }
    }

    private Backend backend(PluginDirectories places, String name) {
        return InstalledPlugins.load(places).backends().stream()
                .filter(b -> b.name().equals(name))
                .findFirst()
                .orElseThrow();
    }

    private Backend tensorflow(PluginDirectories places) {
        return backend(places, "tensorflow");
    }

    @Test
    void aModelWhosePluginIsAbsentSaysHowToGetIt() {
        Backend backend = tensorflow(new PluginDirectories(plugins, null));
        assertThat(backend.defaultFiles()).contains("model.savedmodel", "saved_model.pb");
        assertThatThrownBy(() -> backend.load(
                        new ModelLocation(new ServableId("m", 1), directory, directory),
                        ModelConfig.unspecified("m"),
                        new BackendContext(1, directory, Map.of())))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
                    assertThat(e.describe()).contains("model 'm'").contains("nereid plugins install tensorflow");
                });
    }

    @ParameterizedTest
    @ValueSource(strings = {"caffe2", "mxnet", "paddle"})
    void everyBackendOfAnAbsentPluginNamesThePlugin(String name) {
        Backend backend = backend(new PluginDirectories(plugins, null), name);
        assertThatThrownBy(() -> backend.load(
                        new ModelLocation(new ServableId("m", 1), directory, directory),
                        ModelConfig.unspecified("m"),
                        new BackendContext(1, directory, Map.of())))
                .isInstanceOfSatisfying(
                        ServingException.class,
                        e -> assertThat(e.describe())
                                .contains("needs the backend '" + name + "', whose plugin is not installed")
                                .contains("nereid plugins install onnx-import"));
    }

    @ParameterizedTest
    @CsvSource(
            quoteCharacter = '`',
            value = {
                "predict_net.pb, x, caffe2",
                "squeeze_predict_net.pb, x, caffe2",
                "model.netdef, x, caffe2",
                "resnet-symbol.json, `{\n  \"nodes\": [`, mxnet",
                "model-symbol.json, `{\"nodes\": [`, mxnet",
                "m.pdmodel, x, paddle",
                "__model__, x, paddle",
                "inference.json, `{\"base_code\":{\"magic\":\"pir\"}}`, paddle",
                "graph.json, `{\"base_code\":{\"magic\":\"pir\"}}`, paddle",
                // Files of other backends, and of none.
                "model.json, `{\"learner\":{\"attributes\":{}}}`, xgboost",
                "inference.json, `{\"learner\":{\"attributes\":{}}}`, xgboost",
                "resnet-symbol.json, `{\"learner\":{\"attributes\":{}}}`, xgboost",
                "settings.json, `{\"nodes\": []}`, -",
                "cluster-symbol.json, `{\"names\": []}`, -",
                "init_model.netdef, x, -",
            })
    void filesOfAnAbsentPluginAreRecognisedByTheirContent(String file, String content, String expected)
            throws Exception {
        Path written = Files.writeString(directory.resolve(file), content);
        Backend backend = new BackendSelector(InstalledPlugins.load(new PluginDirectories(plugins, null))
                        .backends())
                .byFile(written);
        assertThat(backend == null ? "-" : backend.name()).isEqualTo(expected);
    }

    @Test
    void aPluginWhoseJarsTheDistributionHasIsInstalledWithoutAnyFetch() throws Exception {
        Path home = directory.resolve("home");
        jar(Files.createDirectories(home.resolve("lib/plugins/onnx-import")).resolve("sample.jar"), Sample.class);
        PluginDirectories places = new PluginDirectories(plugins, home);
        assertThat(InstalledPlugins.load(places).backends())
                .extracting(Backend::name)
                .doesNotContain("sample");
        installer(true).install(PluginManifest.named("onnx-import"), plugins);
        assertThat(plugins()).isEmpty();
        assertThat(InstalledPlugins.load(places).backends())
                .extracting(Backend::name)
                .contains("sample");
    }

    @Test
    void aBrokenPluginIsNamedAndHarmsNoOther() throws Exception {
        Files.createDirectories(plugins.resolve("empty"));
        Files.createDirectories(plugins.resolve("tensorflow"));
        Files.writeString(plugins.resolve("tensorflow/broken.jar"), "no jar");
        PluginDirectories places = new PluginDirectories(plugins, null);
        assertThat(InstalledPlugins.load(places).backends())
                .extracting(Backend::name)
                .contains("onnxruntime", "tensorflow");
        assertThat(((MissingPluginBackend) tensorflow(places)).reason()).startsWith("broken: ");
        assertThat(run("plugins", "list", "--plugin-dir", plugins.toString())).isZero();
        assertThat(out.toString())
                .contains("empty")
                .contains("broken: it contains no backend, storage provider, response cache or driver of devices in"
                        + " 0 jar(s)");
        assertThat(run("plugins", "remove", "empty", "--plugin-dir", plugins.toString()))
                .isZero();
        assertThat(plugins.resolve("empty")).doesNotExist();
        assertThat(run("plugins", "remove", "../plugins", "--plugin-dir", plugins.toString()))
                .isEqualTo(1);
        assertThat(err.toString()).contains("'../plugins' is not installed");
    }

    @Test
    void aPluginSeesWhatBackendsAreWrittenAgainstAndNoMore() throws Exception {
        Path own = Files.createDirectories(plugins.resolve("sample"));
        jar(own.resolve("sample.jar"), Sample.class);
        PluginDirectories places = new PluginDirectories(plugins, null);
        Backend backend = PluginLoader.load(places, "sample", own)
                .of(PluginKind.BACKEND, Backend.class)
                .get(0);
        assertThat(backend.getClass()).isNotEqualTo(Sample.class);
        assertThat(backend.name()).isEqualTo("sample");
        assertThat(backend.unavailableReason())
                .isEqualTo("io.nereid.app.Main: no, io.nereid.protobuf.ProtobufReader: no, picocli.CommandLine: no,"
                        + " io.netty.channel.Channel: no, io.nereid.tensor.Tensor: yes,"
                        + " io.nereid.backends.java.JavaModel: yes, io.netty.buffer.ByteBuf: no,"
                        + " org.slf4j.Logger: yes, java.sql.Driver: yes");
        assertThat(InstalledPlugins.load(places).backends())
                .extracting(Backend::name)
                .contains("sample");
    }

    private static final String CACHE =
            "package p; import io.nereid.backend.*; import java.util.*; import java.util.concurrent.*; public class"
                    + " Cache implements CacheStoreProvider, CacheStore { final Map<String, byte[]> kept = new"
                    + " ConcurrentHashMap<>(); String key(byte[] k) { return Base64.getEncoder().encodeToString(k); }"
                    + " public String name() { return \"mine\"; } public CacheStore open(Map<String, String> s) { if"
                    + " (!s.containsKey(\"size\")) throw io.nereid.base.ServingException.invalidArgument(\"no size\");"
                    + " return this; } public CompletionStage<byte[]> get(byte[] k) { return"
                    + " CompletableFuture.completedFuture(kept.get(key(k))); } public void put(byte[] k, byte[] v) {"
                    + " kept.put(key(k), v); } public void purge(byte[] p) { kept.clear(); } public Map<String, Long>"
                    + " statistics() { return Map.of(\"of_the_plugin\", 42L); } public void close() {} }";

    @Test
    void aResponseCacheOfAPluginIsUsedByTheEngine() throws Exception {
        new PluginJarBuilder()
                .source("p.Cache", CACHE)
                .service(CacheStoreProvider.class.getName(), "p.Cache")
                .apiVersion(ApiVersion.CURRENT.toString())
                .build(Files.createDirectories(plugins.resolve("mycache")).resolve("mycache.jar"));
        List<CacheStoreProvider> caches =
                InstalledPlugins.load(new PluginDirectories(plugins, null)).cacheProviders();
        assertThat(caches).extracting(CacheStoreProvider::name).contains("redis", "mine");
        EngineOptions.Builder options = EngineOptions.builder(List.of(directory));
        try (Engine engine = new Engine(
                options.cache(new CacheOptions("mine", Map.of("size", "1"))).build(),
                List.of(),
                caches,
                Clock.system())) {
            assertThat(engine.metrics()).contains("of_the_plugin");
        }
        assertThatThrownBy(() -> new Engine(
                        options.cache(new CacheOptions("mine", Map.of())).build(), List.of(), caches, Clock.system()))
                .isInstanceOf(ServingException.class)
                .hasMessage("no size");
        assertThat(run("plugins", "list", "--plugin-dir", plugins.toString())).isZero();
        assertThat(out.toString()).containsPattern("mycache +cache +installed").containsPattern("s3 +storage +not");
    }

    private static String stores(String name, String content) {
        return "package p; import io.nereid.storage.spi.*; import java.util.*; public class " + name
                + " implements StorageProvider { public String name() { return \"" + name + "\"; } public Set<String>"
                + " schemes() { return"
                + " Set.of(\"mem\"); }"
                + " public ObjectSource"
                + " open(StorageContext"
                + " context) { return () ->"
                + " new ObjectSource.Listing(\"mem\","
                + " List.of(new"
                + " ObjectEntry(\"model.txt\","
                + " -1, \"1\", null, false,"
                + " (from, to, cancel) -> {"
                + " java.io.InputStream in ="
                + " new java.io.ByteArrayInputStream(\"" + content
                + "\".getBytes()); return new ObjectStream() { public int read(byte[] b, int n) throws"
                + " java.io.IOException { return in.read(b, 0, n); } public void close() {} }; })),"
                + " ObjectSource.Shape.FILES); } }";
    }

    @Test
    void aStorageProviderOfAPluginIsUsedByTheStorage() throws Exception {
        for (String name : List.of("One", "Two")) {
            new PluginJarBuilder()
                    .source("p." + name, stores(name, "from " + name))
                    .service(StorageProvider.class.getName(), "p." + name)
                    .apiVersion(ApiVersion.CURRENT.toString())
                    .build(Files.createDirectories(plugins.resolve(name)).resolve("plugin.jar"));
        }
        List<StorageProvider> stores =
                InstalledPlugins.load(new PluginDirectories(plugins, null)).storageProviders();
        // The second plugin for a scheme is skipped.
        assertThat(stores).extracting(StorageProvider::name).containsExactly("One");
        try (Storage storage =
                        new Storage(StorageOptions.defaults(directory.resolve("cache")), Clock.system(), stores);
                StorageLease stored = storage.fetch(StorageRequest.of("mem://x"), ProgressListener.none())
                        .toCompletableFuture()
                        .join()) {
            assertThat(Files.readString(stored.path().resolve("model.txt"))).isEqualTo("from One");
        }
    }

    @Test
    void aPluginForAnotherVersionOfTheApiIsRejectedBeforeItsClassesAreLoaded() throws Exception {
        Path own = Files.createDirectories(plugins.resolve("later"));
        new PluginJarBuilder()
                .source(
                        "p.Later",
                        "package p; public class Later extends Gone {"
                                + " static { System.setProperty(\"nereid.test.later\", \"loaded\"); } }")
                .foreignSource("p.Gone", "package p; public class Gone {}")
                .service(Backend.class.getName(), "p.Later")
                .apiVersion((ApiVersion.CURRENT.major() + 1) + ".0")
                .build(own.resolve("later.jar"));
        PluginDirectories places = new PluginDirectories(plugins, null);
        assertThatThrownBy(() -> PluginLoader.load(places, "later", own))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
                    assertThat(e.describe())
                            .contains("later.jar was built for version " + (ApiVersion.CURRENT.major() + 1) + ".0")
                            .contains("compile it against version " + ApiVersion.CURRENT);
                });
        assertThat(System.getProperty("nereid.test.later")).isNull();
        assertThat(InstalledPlugins.load(places).backends())
                .extracting(Backend::name)
                .contains("onnxruntime");
        assertThat(run("plugins", "list", "--plugin-dir", plugins.toString())).isZero();
        assertThat(out.toString()).contains("broken: " + own.resolve("later.jar") + " was built for version");
    }

    private static final String BACKEND =
            "package p; import io.nereid.backend.*; public class Mine implements Backend { public Mine() { %s } public"
                    + " String name() { return \"mine\"; } public java.util.List<String> platforms() { return"
                    + " java.util.List.of(); } public BackendModel load(ModelLocation l, io.nereid.spi.config.ModelConfig"
                    + " c, BackendContext x) { %s } }";

    private Path mine(PluginJarBuilder builder, String constructor, String load) throws Exception {
        Path own = Files.createDirectories(plugins.resolve("mine"));
        builder.source("p.Mine", String.format(Locale.ROOT, BACKEND, constructor, load))
                .service(Backend.class.getName(), "p.Mine")
                .build(own.resolve("mine.jar"));
        return own;
    }

    /** The interface as a later version might have it: without {@code defaultFiles}, and with another method. */
    private static PluginJarBuilder otherApi() {
        return new PluginJarBuilder()
                .foreignSource(
                        "io.nereid.backend.Backend",
                        "package io.nereid.backend; public interface Backend { String name(); java.util.List<String>"
                                + " platforms(); static int limit(String what) { return 1; } BackendModel"
                                + " load(ModelLocation l, io.nereid.spi.config.ModelConfig c, BackendContext x); }");
    }

    @Test
    void aMethodThatThisVersionOfTheApiLacksIsNamed() throws Exception {
        Path own = mine(otherApi(), "Backend.limit(\"runs\");", "return null;");
        assertThatThrownBy(() -> PluginLoader.load(new PluginDirectories(plugins, null), "mine", own))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
                    assertThat(e.getMessage())
                            .startsWith("plugin 'mine' was compiled against another version of Nereid's plugin API")
                            .contains("'int io.nereid.backend.Backend.limit(java.lang.String)'");
                });
    }

    @Test
    void aMethodThatThePluginLacksIsNamed() throws Exception {
        Path own = mine(otherApi(), "", "return null;");
        assertThatThrownBy(() -> PluginLoader.load(new PluginDirectories(plugins, null), "mine", own))
                .isInstanceOfSatisfying(
                        ServingException.class,
                        e -> assertThat(e.getMessage())
                                .startsWith("plugin 'mine' was compiled against another version of Nereid's plugin API")
                                .contains("p.Mine")
                                .contains("defaultFiles()"));
    }

    private static void jar(Path file, Class<?> provider) throws Exception {
        String path = provider.getName().replace('.', '/') + ".class";
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (JarOutputStream jar = new JarOutputStream(bytes);
                var code = provider.getClassLoader().getResourceAsStream(path)) {
            jar.putNextEntry(new JarEntry(path));
            code.transferTo(jar);
            jar.putNextEntry(new JarEntry("META-INF/services/" + Backend.class.getName()));
            jar.write(provider.getName().getBytes(StandardCharsets.UTF_8));
        }
        Files.write(file, bytes.toByteArray());
    }

    /**
     * Reports through {@link #unavailableReason} which classes it sees. Loaded by a plugin's class loader, never by the
     * test's.
     */
    public static final class Sample implements Backend {
        @Override
        public String name() {
            return "sample";
        }

        @Override
        public List<String> platforms() {
            return List.of("sample_model");
        }

        @Override
        public List<String> defaultFiles() {
            return List.of("model.sample");
        }

        @Override
        public String unavailableReason() {
            StringBuilder seen = new StringBuilder();
            for (String name : List.of(
                    "io.nereid.app.Main",
                    "io.nereid.protobuf.ProtobufReader",
                    "picocli.CommandLine",
                    "io.netty.channel.Channel",
                    "io.nereid.tensor.Tensor",
                    "io.nereid.backends.java.JavaModel",
                    "io.netty.buffer.ByteBuf",
                    "org.slf4j.Logger",
                    "java.sql.Driver")) {
                seen.append(seen.length() == 0 ? "" : ", ").append(name).append(": ");
                try {
                    seen.append(Class.forName(name, false, getClass().getClassLoader()) == null ? "?" : "yes");
                } catch (ClassNotFoundException e) {
                    seen.append("no");
                }
            }
            return seen.toString();
        }

        @Override
        public io.nereid.backend.BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
            throw new UnsupportedOperationException();
        }
    }

    private int run(String... arguments) {
        return Main.commandLine()
                .setOut(new PrintWriter(out, true))
                .setErr(new PrintWriter(err, true))
                .execute(arguments);
    }
}
