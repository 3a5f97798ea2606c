// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import io.nereid.backend.Conversion;
import io.nereid.backend.ModelConverter;
import io.nereid.backends.huggingface.graph.EncoderConfig;
import io.nereid.backends.huggingface.graph.EncoderFamily;
import io.nereid.backends.huggingface.graph.EncoderHeads;
import io.nereid.backends.huggingface.graph.EncoderTask;
import io.nereid.backends.huggingface.graph.SentenceStep;
import io.nereid.backends.huggingface.weights.Checkpoint;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * Says whether a folder of transformers is served as it is; of another one a {@code model.py} for the backend {@code python} is made.
 * Thread-safe: has no state.
 */
public final class TransformersConverter implements ModelConverter {
    private static final String TEMPLATE = "transformers_model.py";

    /** For {@link java.util.ServiceLoader}. */
    public TransformersConverter() {}

    @Override
    public boolean recognises(Path file) {
        Path folder = folder(file);
        return Files.isRegularFile(folder.resolve("config.json"))
                && new HuggingFaceBackend().defaultFiles().stream().anyMatch(name -> Files.exists(folder.resolve(name)))
                && (Files.isDirectory(file) || new HuggingFaceBackend().recognises(file));
    }

    private static Path folder(Path file) {
        Path whole = file.toAbsolutePath().normalize();
        Path parent = whole.getParent();
        return Files.isDirectory(whole) || parent == null ? whole : parent;
    }

    @Override
    public Conversion convert(Path file) {
        Path folder = folder(file);
        String architecture = "";
        try {
            SentenceModules modules = SentenceModules.read(folder);
            Path encoder = modules == null ? folder : modules.encoder();
            Map<?, ?> fields = FolderFile.object(encoder.resolve("config.json"));
            architecture = fields == null ? "" : new EncoderConfig(fields).architecture();
            EncoderConfig config = RefusedModels.check(encoder, folder);
            EncoderFamily family = RefusedModels.family(encoder, config, false);
            EncoderTask task =
                    modules != null ? EncoderTask.TEXT_EMBEDDING : RefusedModels.task(encoder, config.architecture());
            List<SentenceStep> steps =
                    modules != null ? modules.steps() : List.of(new SentenceStep.Pool(List.of("mean")));
            EncoderHeads.build(config, Checkpoint.open(encoder), family, task, steps);
            return new Conversion(
                    "an encoder of Hugging Face's transformers, " + config.architecture() + " for the task "
                            + task.text() + ", which is served as it is",
                    Map.of(),
                    List.of("nereid serve " + folder));
        } catch (ServingException e) {
            return new Conversion(
                    "a model of Hugging Face's transformers that this server does not compute itself: "
                            + e.getMessage(),
                    Map.of("model.py", template(pipeline(architecture))),
                    List.of(
                            "# model.py runs the model in Python, with the packages transformers and torch; the folder is then one"
                                    + " of the backend python",
                            "# with more requests at once, rather export it: " + e.remedy()));
        }
    }

    /** The pipeline for an architecture; empty to let transformers choose it. */
    private static String pipeline(String architecture) {
        if (RefusedModels.generates(architecture)) {
            return "text-generation";
        }
        if (architecture.endsWith("ForConditionalGeneration")) {
            return "text2text-generation";
        }
        EncoderTask task = EncoderTask.ofArchitecture(architecture);
        return task == null ? "" : task.pipeline();
    }

    private static byte[] template(String pipeline) {
        try (InputStream in = TransformersConverter.class.getResourceAsStream(TEMPLATE)) {
            if (in == null) {
                throw new IllegalStateException("the resource " + TEMPLATE + " is missing");
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8)
                    .replace("@TASK@", pipeline)
                    .getBytes(StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
