// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz;

import io.nereid.app.client.NpyTarget;
import io.nereid.backends.catboost.CatboostBackend;
import io.nereid.backends.huggingface.SentencePieceTarget;
import io.nereid.backends.huggingface.weights.CheckpointTarget;
import io.nereid.backends.mlflow.MlmodelTarget;
import io.nereid.backends.onnx.OnnxTarget;
import io.nereid.backends.onnximport.caffe2.Caffe2Target;
import io.nereid.backends.onnximport.mxnet.MxnetTarget;
import io.nereid.backends.onnximport.paddle.PaddleTarget;
import io.nereid.backends.pytorch.TorchTarget;
import io.nereid.backends.sklearn.SklearnTarget;
import io.nereid.backends.tensorflow.SavedModelTarget;
import io.nereid.backends.tflite.TfliteTarget;
import io.nereid.backends.trees.LightgbmBackend;
import io.nereid.backends.trees.XgboostBackend;
import io.nereid.control.apiserver.http.KubernetesProtobufTarget;
import io.nereid.control.store.JournalTarget;
import io.nereid.fuzz.data.ArchiveTarget;
import io.nereid.fuzz.data.CertificateTarget;
import io.nereid.fuzz.data.ContentEncodingTarget;
import io.nereid.fuzz.data.TfDataTarget;
import io.nereid.fuzz.model.BackendTarget;
import io.nereid.fuzz.text.JsonTarget;
import io.nereid.fuzz.text.JsonTensorTarget;
import io.nereid.fuzz.text.ManifestTarget;
import io.nereid.fuzz.text.ModelConfigTarget;
import io.nereid.fuzz.text.PatchTarget;
import io.nereid.fuzz.text.PathTarget;
import io.nereid.fuzz.text.ScalarTarget;
import io.nereid.fuzz.text.TfServingFilesTarget;
import io.nereid.fuzz.wire.GrpcFramingTarget;
import io.nereid.fuzz.wire.GrpcMessageTarget;
import io.nereid.fuzz.wire.HpackTarget;
import io.nereid.fuzz.wire.Http1Target;
import io.nereid.fuzz.wire.Http2Target;
import io.nereid.fuzz.wire.RestTarget;
import io.nereid.protocols.v2.arrow.ArrowTarget;
import io.nereid.protocols.v2.transcoding.TranscodingTarget;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.PathMatcher;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * The targets by name, each with the files of the repository that are its seeds: models and configurations that other tests read, so
 * that they are not stored twice. Immutable.
 */
public final class FuzzTargets {
    /** The root of the repository. */
    static final Path ROOT = root();

    /** Inputs that were findings, a folder for each target. */
    static final Path CORPUS = ROOT.resolve("testing/fuzz/src/test/resources/corpus");

    /** Larger files are not seeds: the fuzzer would spend its time on copying them. */
    private static final int LARGEST_SEED = 40_000;

    /** Larger files are seeds only while there are few. */
    private static final int LARGE_SEED = 6_000;

    private static final int FEW_SEEDS = 5;
    private static final int MOST_SEEDS = 60;

    private static final String SKLEARN = "backends/sklearn/src/test/resources/models";
    private static final String TREES = "backends/trees/src/test/resources/models";
    private static final String CATBOOST = "backends/catboost/src/test/resources/models";

    private record Entry(Supplier<FuzzTarget> target, List<String> files) {}

    private static final Map<String, Entry> TARGETS = new LinkedHashMap<>();

    static {
        add("http1", Http1Target::new);
        add("http2", Http2Target::new);
        add("hpack", HpackTarget::new);
        add("grpc-framing", GrpcFramingTarget::new);
        add("path", PathTarget::new);
        add("content-encoding", ContentEncodingTarget::new);
        add("v2-rest", RestTarget::ofV2);
        add("v2-grpc", GrpcMessageTarget::ofV2);
        add("arrow", ArrowTarget::new, "protocols/v2/src/test/resources/arrow:*.arrows");
        add("v1-rest", RestTarget::ofV1);
        add("tfserving-grpc", GrpcMessageTarget::ofV1);
        add("transcoding", TranscodingTarget::new);
        add("mlflow-rest", RestTarget::ofMlflow);
        add("json", JsonTarget::new);
        add("json-tensor", JsonTensorTarget::new);
        add("tensor-proto", () -> new TfDataTarget(TfDataTarget.Form.TENSOR));
        add("example", () -> new TfDataTarget(TfDataTarget.Form.EXAMPLE));
        add("prediction-log", () -> new TfDataTarget(TfDataTarget.Form.PREDICTION_LOG));
        add("records", () -> new TfDataTarget(TfDataTarget.Form.RECORD_FILE));
        add("model-config", ModelConfigTarget::new, "serving/repository/src/test/resources/corpus:*/config.pbtxt");
        add("tfserving-files", TfServingFilesTarget::new);
        add("manifest", ManifestTarget::new);
        add("scalar", ScalarTarget::new);
        add("patch", PatchTarget::new);
        add("kubernetes-protobuf", KubernetesProtobufTarget::new);
        add("journal", JournalTarget::new);
        add("tar", () -> new ArchiveTarget("a.tar"));
        add("tar-gz", () -> new ArchiveTarget("a.tar.gz"));
        add("zip", () -> new ArchiveTarget("a.zip"));
        add(
                "pickle",
                () -> new SklearnTarget(SklearnTarget.Form.FILE),
                SKLEARN + ":1.9.1/*.{pkl,pickle,joblib}",
                SKLEARN + ":0.24.2/*.joblib");
        add(
                "skops",
                () -> new SklearnTarget(SklearnTarget.Form.FILE),
                "backends/mlflow/src/test/resources/mlflow:*/*.skops");
        add("skops-schema", () -> new SklearnTarget(SklearnTarget.Form.SCHEMA));
        add("npy", () -> new SklearnTarget(SklearnTarget.Form.ARRAY));
        add("npy-client", NpyTarget::new);
        add("xgboost-json", () -> new BackendTarget(new XgboostBackend(), "model.json"), TREES + ":xgboost/*.json");
        add("xgboost-ubj", () -> new BackendTarget(new XgboostBackend(), "model.ubj"), TREES + ":xgboost/*.ubj");
        add("lightgbm", () -> new BackendTarget(new LightgbmBackend(), "model.txt"), TREES + ":lightgbm/*.txt");
        add("catboost-cbm", () -> new BackendTarget(new CatboostBackend(), "model.cbm"), CATBOOST + ":*.cbm");
        add("catboost-json", () -> new BackendTarget(new CatboostBackend(), "model.json"), CATBOOST + ":*.json");
        add("torch-archive", () -> new TorchTarget(false), "backends/pytorch/src/test/resources:**.pt");
        add("torch-source", () -> new TorchTarget(true));
        add("tflite", TfliteTarget::new, "backends/tflite/src/test/resources/models:**.tflite");
        add("onnx", OnnxTarget::new, "backends/onnx/src/test/resources/models:**.onnx");
        add("saved-model", SavedModelTarget::new, "backends/tensorflow/src/test/resources/models:**.pb");
        add("mlmodel", MlmodelTarget::new, "backends/mlflow/src/test/resources/mlflow:*/MLmodel");
        add("caffe2", Caffe2Target::new);
        add("mxnet", MxnetTarget::new);
        add("paddle", PaddleTarget::new);
        add("safetensors", () -> new CheckpointTarget(CheckpointTarget.Form.SAFETENSORS));
        add("safetensors-header", () -> new CheckpointTarget(CheckpointTarget.Form.HEADER));
        add("torch-weights", () -> new CheckpointTarget(CheckpointTarget.Form.TORCH));
        add("state-dictionary", () -> new CheckpointTarget(CheckpointTarget.Form.PICKLE));
        add("sentencepiece", SentencePieceTarget::new);
        add("certificate", CertificateTarget::new);
    }

    private FuzzTargets() {}

    private static void add(String name, Supplier<FuzzTarget> target, String... files) {
        TARGETS.put(name, new Entry(target, List.of(files)));
    }

    /** The root folder, found from the working directory: that of the module in tests, any in the script. */
    private static Path root() {
        Path folder = Path.of("").toAbsolutePath();
        while (folder != null && !Files.isDirectory(folder.resolve("testing/fuzz"))) {
            folder = folder.getParent();
        }
        if (folder == null) {
            throw new IllegalStateException(
                    "not started within the repository: " + Path.of("").toAbsolutePath());
        }
        return folder;
    }

    static List<String> names() {
        return List.copyOf(TARGETS.keySet());
    }

    static FuzzTarget target(String name) {
        return entry(name).target.get();
    }

    private static Entry entry(String name) {
        Entry entry = TARGETS.get(name);
        if (entry == null) {
            throw new IllegalArgumentException(
                    "unknown target '" + name + "' (expected one of " + TARGETS.keySet() + ")");
        }
        return entry;
    }

    /** The seeds of a target: made by code, and read from files of the repository. */
    static List<byte[]> seeds(String name) {
        List<byte[]> seeds = new ArrayList<>(target(name).seeds());
        for (String files : entry(name).files) {
            try {
                seeds.addAll(read(files));
            } catch (IOException e) {
                throw new UncheckedIOException("seeds of " + name, e);
            }
        }
        return seeds;
    }

    /** @param files a folder of the repository, a colon, and a pattern for paths below it */
    private static List<byte[]> read(String files) throws IOException {
        int colon = files.indexOf(':');
        Path folder = ROOT.resolve(files.substring(0, colon));
        PathMatcher wanted = FileSystems.getDefault().getPathMatcher("glob:" + files.substring(colon + 1));
        List<Path> found;
        try (Stream<Path> all = Files.walk(folder)) {
            found = all.filter(f -> Files.isRegularFile(f)
                            && f.toFile().length() <= LARGEST_SEED
                            && wanted.matches(folder.relativize(f)))
                    .sorted(Comparator.comparing((Path f) -> f.toFile().length())
                            .thenComparing(f -> f))
                    .toList();
        }
        if (found.isEmpty()) {
            throw new IOException("no file matches " + files);
        }
        // The smallest ones: the fuzzer runs more of them in a second.
        List<byte[]> seeds = new ArrayList<>();
        for (Path file : found) {
            if (seeds.size() >= (file.toFile().length() > LARGE_SEED ? FEW_SEEDS : MOST_SEEDS)) {
                break;
            }
            seeds.add(Files.readAllBytes(file));
        }
        return seeds;
    }

    /** The inputs of the corpus of a target. */
    static List<Path> findings(String name) {
        Path folder = CORPUS.resolve(name);
        if (!Files.isDirectory(folder)) {
            return List.of();
        }
        try (Stream<Path> all = Files.list(folder)) {
            return all.sorted().toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The bytes of texts, as seeds. */
    public static List<byte[]> texts(String... texts) {
        return Stream.of(texts).map(t -> t.getBytes(StandardCharsets.UTF_8)).toList();
    }
}
