// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.ServiceLoader;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The contract test of {@link Backend}: a backend's test class extends it and provides one small model. It checks that
 *
 * <ul>
 *   <li>the backend is found by its name, and its models by their files;
 *   <li>a loaded model has a complete configuration, which the backend accepts as it is;
 *   <li>runs return the requested outputs in their order, do not share state, and are not affected by a cancellation when
 *       nothing runs;
 *   <li>files of other formats, truncated files and damaged ones are rejected with the name of the file and a remedy, or
 *       are served;
 *   <li>after {@link BackendModel#close} nothing refers to the model, and none of its files is open or mapped.
 * </ul>
 *
 * A test that does not apply, such as one about files for a model without a file, is reported as skipped. Needs JUnit 5
 * and AssertJ. Confined to one test. The whole of it is in {@code docs/WRITING-A-BACKEND.md}.
 *
 * <pre>{@code
 * class MyBackendTest extends BackendContract {
 *     protected Backend backend() { return new MyBackend(); }
 *     protected ModelLocation model(Path directory) { ... }       // lays a valid model out under the directory
 *     protected ModelLocation invalidModel(Path directory) { ... } // one that load must reject
 *     protected List<Tensor> inputs(int seed) { ... }             // inputs of a run of the valid model
 * }
 * }</pre>
 */
public abstract class BackendContract {
    private static final int THREADS = 4;
    private static final int RUNS = 50;
    private static final int DAMAGED = 100;
    private static final int SWEEPS = 10;

    /** Contents that are not a model of any format, by description. */
    private static final Map<String, byte[]> FOREIGN = foreign();

    /** The test's temporary directory. */
    @TempDir
    public Path directory;

    /** Called by JUnit. */
    protected BackendContract() {}

    /** The backend under test. */
    protected abstract Backend backend();

    /** A small model that works without configuration, laid out under {@code directory}. */
    protected abstract ModelLocation model(Path directory);

    /** A model that the backend must reject, laid out under {@code directory}. */
    protected abstract ModelLocation invalidModel(Path directory);

    /** The model's configuration; empty by default. Overridden for a backend that needs settings. */
    protected ModelConfig config(String name) {
        return ModelConfig.unspecified(name);
    }

    /**
     * The inputs of a run of {@link #model}, in the order of {@link ModelConfig#modelInputs}. Creates new tensors with each
     * call; the seed varies their values.
     */
    protected abstract List<Tensor> inputs(int seed);

    /**
     * The model file of {@link #model}; by default the file with a default name in the version's directory. Null for a
     * model without a file: the tests about files are then skipped.
     */
    protected @Nullable Path modelFile(ModelLocation source) {
        return backend().defaultFiles().stream()
                .map(name -> source.versionDirectory().resolve(name))
                .filter(Files::isRegularFile)
                .findFirst()
                .orElse(null);
    }

    /**
     * Further contents that the backend must reject, by description, such as a file of an unsupported newer version.
     */
    protected Map<String, byte[]> rejectedContents() {
        return Map.of();
    }

    /**
     * Whether the backend is also tested with damaged files. Overridden for a native library that is known to crash the
     * process on some of them.
     */
    protected boolean survivesDamage() {
        return true;
    }

    /**
     * Whether a damaged file that loads is also run. Overridden for a file that is code of the model's author: the contract
     * does not say what changed code does with its tensors.
     */
    protected boolean runsDamagedFiles() {
        return true;
    }

    /**
     * Whether the message about a rejected file has its name. Overridden for a native library whose errors do not say
     * which of several files is wrong.
     */
    protected boolean namesRejectedFiles() {
        return true;
    }

    private BackendModel load() {
        ModelLocation source = model(directory);
        return load(source);
    }

    private BackendModel load(ModelLocation source) {
        return backend().load(source, config(source.id().model()), context());
    }

    private BackendContext context() {
        return new BackendContext(2, directory.resolve("scratch"), Map.of());
    }

    private static List<String> outputs(BackendModel model) {
        return model.config().modelOutputs().stream().map(TensorSpec::name).toList();
    }

    /** Runs one request and returns its outputs. The inputs are closed by then. */
    private static List<Tensor> run(
            BackendModel model, ModelInstance invocation, List<Tensor> inputs, List<String> requested) {
        if (!model.traits().takesRequests()) {
            List<Tensor> results = invocation.run(inputs, requested);
            Tensor.closeAll(inputs);
            return results;
        }
        try (RecordingModelRequest request = new RecordingModelRequest(inputs, requested)) {
            invocation.execute(List.of(request));
            assertThat(request.awaitEnd()).isTrue();
            assertThat(request.ends()).hasSize(1).doesNotContain("fail", "reschedule");
            List<Tensor> results = new ArrayList<>();
            for (RecordingModelRequest.Answer answer : request.answers()) {
                answer.outputs().forEach(t -> results.add(t.retain()));
            }
            return results;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }

    private byte[] answer(BackendModel model, ModelInstance invocation, List<String> outputs, int seed) {
        List<Tensor> results = run(model, invocation, inputs(seed), outputs);
        byte[] bytes = new byte[results.stream().mapToInt(Tensor::byteLength).sum()];
        int at = 0;
        for (Tensor result : results) {
            result.region().getBytes(result.offset(), bytes, at, result.byteLength());
            at += result.byteLength();
        }
        Tensor.closeAll(results);
        return bytes;
    }

    /** The backend is registered in {@code META-INF/services} under a unique name. */
    @Test
    public void theBackendIsFoundByItsName() {
        assertThat(ServiceLoader.load(Backend.class))
                .filteredOn(b -> b.name().equals(backend().name()))
                .hasSize(1);
        assertThat(backend().platforms()).isNotEmpty();
        assertThat(backend().unavailableReason()).isNull();
    }

    /** See {@link BackendModel#config()}. */
    @Test
    public void aLoadedModelHasACompleteConfiguration() {
        try (BackendModel model = load()) {
            assertThat(model.config().backend()).isEqualTo(backend().name());
            assertThat(model.config().maxBatchSize()).isNotNegative();
            assertThat(model.config().instances()).isPositive();
            assertThat(model.config().outputs()).isNotEmpty();
            List<Tensor> inputs = inputs(0);
            assertThat(model.config().modelInputs().stream().map(TensorSpec::name))
                    .containsExactlyElementsOf(inputs.stream().map(Tensor::name).toList());
            Tensor.closeAll(inputs);
            assertThat(model.traits().inputAlignment()).isPositive();
            assertThat(model.memoryBytes()).isGreaterThanOrEqualTo(-1);
        }
    }

    /** See {@link ModelInstance#run}. */
    @Test
    public void requestedOutputsComeInTheRequestedOrder() {
        try (BackendModel model = load();
                ModelInstance invocation = model.newInstance()) {
            List<String> requested = new ArrayList<>(outputs(model));
            java.util.Collections.reverse(requested);
            List<Tensor> results = run(model, invocation, inputs(1), requested);
            assertThat(results).extracting(Tensor::name).startsWith(requested.toArray(String[]::new));
            if (!model.config().decoupled()) {
                assertThat(results).hasSameSizeAs(requested);
            }
            assertThat(results).noneMatch(t -> t.shape().isDynamic());
            Tensor.closeAll(results);
            assertThat(answer(model, invocation, requested.subList(0, 1), 1)).isNotEmpty();
        }
    }

    /** Instances do not share state that a run changes. */
    @Test
    public void concurrentRunsGiveTheirOwnResults() throws Exception {
        ExecutorService pool = Threads.pool("contract", THREADS);
        try (BackendModel model = load()) {
            List<String> outputs = outputs(model);
            byte[][] expected = new byte[RUNS][];
            try (ModelInstance invocation = model.newInstance()) {
                for (int i = 0; i < RUNS; i++) {
                    expected[i] = answer(model, invocation, outputs, i);
                }
            }
            List<Future<Integer>> equal = new ArrayList<>();
            for (int t = 0; t < THREADS; t++) {
                equal.add(pool.submit(() -> {
                    int same = 0;
                    try (ModelInstance invocation = model.newInstance()) {
                        for (int i = 0; i < RUNS; i++) {
                            same += Arrays.equals(answer(model, invocation, outputs, i), expected[i]) ? 1 : 0;
                        }
                    }
                    return same;
                }));
            }
            for (Future<Integer> same : equal) {
                assertThat(same.get(60, TimeUnit.SECONDS)).isEqualTo(RUNS);
            }
        } finally {
            pool.shutdown();
        }
    }

    /** A cancellation before or after a run does not affect later runs. */
    @Test
    public void cancellingNothingDoesNothing() {
        try (BackendModel model = load();
                ModelInstance invocation = model.newInstance()) {
            invocation.cancel();
            byte[] first = answer(model, invocation, outputs(model), 2);
            invocation.cancel();
            assertThat(answer(model, invocation, outputs(model), 2)).isEqualTo(first);
        }
    }

    /** The backend accepts a configuration that it has completed, and completes nothing when completion is off. */
    @Test
    public void aCompleteConfigurationIsOnlyChecked() {
        ModelLocation source = model(directory);
        ModelConfig whole;
        try (BackendModel model = load()) {
            whole = model.config();
        }
        try (BackendModel again =
                backend().load(source, whole, new BackendContext(2, directory.resolve("scratch"), Map.of(), false))) {
            assertThat(again.config()).isEqualTo(whole);
        }
    }

    /** See {@link Backend#load}. */
    @Test
    public void anInvalidModelIsRejectedWithARemedy() {
        ModelLocation source = invalidModel(directory);
        assertThatThrownBy(() -> backend()
                        .load(source, config(source.id().model()), context())
                        .close())
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                    assertThat(e.remedy()).isNotBlank();
                });
    }

    /** See {@link Backend#defaultFiles} and {@link Backend#recognises}: a model is found without configuration. */
    @Test
    public void aModelIsRecognisedByItsFile() throws IOException {
        ModelLocation source = model(directory);
        fileOrSkip(source);
        List<Path> marks = backend().defaultFiles().stream()
                .map(name -> source.versionDirectory().resolve(name))
                .filter(Files::exists)
                .toList();
        assertThat(marks)
                .as("default files in the version's directory")
                .isNotEmpty()
                .allMatch(backend()::recognises);
        Path odd = directory.resolve("odd-" + marks.get(0).getFileName());
        backend().recognises(odd);
        for (byte[] content : FOREIGN.values()) {
            Files.write(odd, content);
            backend().recognises(odd);
        }
    }

    /** See {@link Backend#load}. */
    @Test
    public void aForeignFileIsRejectedByName() throws IOException {
        ModelLocation source = model(directory);
        Path file = fileOrSkip(source);
        Map<String, byte[]> contents = new TreeMap<>(FOREIGN);
        contents.putAll(rejectedContents());
        for (Map.Entry<String, byte[]> content : contents.entrySet()) {
            assertRejected(content.getKey(), with(source, file, content.getValue()), file);
        }
    }

    /**
     * See {@link Backend#load}. A truncated file is rejected, unless the missing part is irrelevant: then the outputs
     * are the same.
     */
    @Test
    public void aTruncatedFileIsRejectedByName() throws IOException {
        ModelLocation source = model(directory);
        Path file = fileOrSkip(source);
        byte[] whole = Files.readAllBytes(file);
        byte[] expected = answer(source);
        for (double share : new double[] {0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99}) {
            byte[] cut = Arrays.copyOf(whole, (int) (whole.length * share));
            ModelLocation variant = with(source, file, cut);
            if (share <= 0.5 || !loads(variant)) {
                assertRejected("the first " + cut.length + " bytes of " + whole.length, variant, file);
            } else {
                assertThat(answer(variant)).isEqualTo(expected);
            }
        }
    }

    private boolean loads(ModelLocation source) {
        try {
            load(source).close();
            return true;
        } catch (ServingException e) {
            return false;
        }
    }

    private byte[] answer(ModelLocation source) {
        try (BackendModel model = load(source);
                ModelInstance invocation = model.newInstance()) {
            return answer(model, invocation, outputs(model), 1);
        }
    }

    /** A damaged file is rejected or is served as another model; in both cases the process survives. */
    @Test
    public void aDamagedFileIsRejectedOrServed() throws IOException {
        ModelLocation source = model(directory);
        Path file = fileOrSkip(source);
        assumeTrue(survivesDamage(), "NOT TESTED: the library of " + backend().name() + " crashes on damaged files");
        byte[] whole = Files.readAllBytes(file);
        Random random = new Random(1);
        for (int i = 0; i < DAMAGED; i++) {
            byte[] damaged = whole.clone();
            for (int n = 1 + random.nextInt(3); n > 0; n--) {
                damaged[random.nextInt(damaged.length)] = (byte) random.nextInt(256);
            }
            ModelLocation variant = with(source, file, damaged);
            try (BackendModel model = load(variant);
                    ModelInstance invocation = model.newInstance()) {
                List<String> names = model.config().modelInputs().stream()
                        .map(TensorSpec::name)
                        .toList();
                List<Tensor> inputs = inputs(i);
                if (runsDamagedFiles()
                        && names.equals(inputs.stream().map(Tensor::name).toList())) {
                    Tensor.closeAll(run(model, invocation, inputs, outputs(model)));
                } else {
                    Tensor.closeAll(inputs);
                }
            } catch (ServingException e) {
                assertThat(e.getMessage()).isNotBlank();
                if (e.code() == ErrorCode.INTERNAL) {
                    assertThat(e)
                            .as("an INTERNAL error comes from a run, not from loading")
                            .hasMessageContaining("model");
                }
            }
        }
    }

    /** See {@link BackendModel#close}: nothing refers to the model, and its files are neither open nor mapped. */
    @Test
    public void aClosedModelIsFreed() throws Exception {
        WeakReference<BackendModel> model = loadRunAndClose();
        for (int i = 0; i < SWEEPS && (model.get() != null || !held().isEmpty()); i++) {
            BufferLeakListener.sweep();
        }
        assertThat(model.get()).as("something still refers to the closed model").isNull();
        assertThat(held()).as("files that are still open or mapped").isEmpty();
    }

    /** A method of its own, so that no local variable keeps the model reachable. */
    private WeakReference<BackendModel> loadRunAndClose() {
        try (BackendModel model = load();
                ModelInstance invocation = model.newInstance()) {
            assertThat(answer(model, invocation, outputs(model), 3)).isNotNull();
            return new WeakReference<>(model);
        }
    }

    /** Returns the files below {@link #directory} that this process has open or mapped, on systems with /proc. */
    private List<String> held() throws IOException {
        List<String> held = new ArrayList<>();
        Path descriptors = Path.of("/proc/self/fd");
        if (!Files.isDirectory(descriptors)) {
            return held;
        }
        String place = directory.toRealPath().toString();
        try (Stream<Path> open = Files.list(descriptors)) {
            for (Path descriptor : open.toList()) {
                try {
                    String target = Files.readSymbolicLink(descriptor).toString();
                    if (target.startsWith(place)) {
                        held.add(target);
                    }
                } catch (IOException e) {
                    // Closed in the meantime, such as the descriptor of the directory listing.
                }
            }
        }
        for (String line : Files.readAllLines(Path.of("/proc/self/maps"))) {
            if (line.contains(place)) {
                held.add(line);
            }
        }
        return held;
    }

    private Path fileOrSkip(ModelLocation source) {
        Path file = modelFile(source);
        assumeTrue(file != null, "the models of " + backend().name() + " have no file");
        return Objects.requireNonNull(file);
    }

    /** Copies the model with another content of its file. */
    private ModelLocation with(ModelLocation source, Path file, byte[] content) throws IOException {
        Path from = source.modelDirectory();
        Path to = Files.createTempDirectory(directory, "variant")
                .resolve(from.getFileName().toString());
        try (Stream<Path> walk = Files.walk(from)) {
            for (Path p : walk.toList()) {
                Path target = to.resolve(from.relativize(p).toString());
                if (Files.isDirectory(p)) {
                    Files.createDirectories(target);
                } else if (p.equals(file)) {
                    Files.write(target, content);
                } else {
                    Files.copy(p, target);
                }
            }
        }
        return new ModelLocation(
                source.id(),
                to,
                to.resolve(from.relativize(source.versionDirectory()).toString()));
    }

    private void assertRejected(String what, ModelLocation variant, Path file) {
        assertThatThrownBy(() -> load(variant).close()).as(what).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).as(what).isIn(ErrorCode.INVALID_ARGUMENT, ErrorCode.FAILED_PRECONDITION);
            if (namesRejectedFiles()) {
                assertThat(e).as(what).hasMessageContaining(file.getFileName().toString());
            }
            assertThat(e.remedy()).as(what).isNotBlank();
        });
    }

    private static Map<String, byte[]> foreign() {
        byte[] noise = new byte[4096];
        new Random(7).nextBytes(noise);
        Map<String, byte[]> contents = new TreeMap<>();
        contents.put("nothing", new byte[0]);
        contents.put("noise", noise);
        contents.put("zeros", new byte[4096]);
        contents.put("a picture", bytes("\u0089PNG\r\n\u001a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\b\2\0\0\0"));
        contents.put("a page of a login form", bytes("<!DOCTYPE html><html><body>Sign in</body></html>"));
        contents.put(
                "a pointer to a large file",
                bytes("version https://git-lfs.github.com/spec/v1\noid sha256:" + "ab".repeat(32) + "\nsize 1234\n"));
        contents.put("a program", bytes("\u007fELF\2\1\1\0\0\0\0\0\0\0\0\0\3\0>\0" + "\0".repeat(200)));
        contents.put("a document of other software", bytes("{\"name\": \"settings\", \"values\": [1, 2, 3]}"));
        contents.put("a line of text", bytes("to be done\n"));
        contents.put("an empty archive", bytes("PK\5\6" + "\0".repeat(18)));
        contents.put("the beginning of an archive", bytes("PK\3\4\24\0\0\0\b\0" + "\0".repeat(64)));
        contents.put("something compressed", bytes("\u001f\u008b\b\0\0\0\0\0\0\3" + "x".repeat(40)));
        return Map.copyOf(contents);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }
}
