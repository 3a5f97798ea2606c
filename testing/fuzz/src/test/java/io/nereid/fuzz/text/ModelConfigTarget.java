// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.text;

import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.FuzzTargets;
import io.nereid.fuzz.InputFile;
import io.nereid.json.JsonValues;
import io.nereid.json.JsonWriter;
import io.nereid.repository.config.ModelConfigDocument;
import io.nereid.repository.config.ModelConfigReader;
import io.nereid.repository.problem.Problem;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.spi.config.ModelConfig;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * A model's configuration: config.pbtxt, or JSON when the first character is a space. One that is accepted can be shown as a document,
 * and the document means the same. Confined to one thread.
 */
public final class ModelConfigTarget implements FuzzTarget {
    private final InputFile file = new InputFile("config.pbtxt");

    @Override
    public void read(byte[] input) {
        String text = new String(input, StandardCharsets.UTF_8);
        Path folder = file.folder();
        Path path = folder.resolve("config.pbtxt");
        ProblemCollector problems = new ProblemCollector();
        ModelConfig config = (text.startsWith(" ")
                        ? ModelConfigReader.readJson(path, text, folder, "m", true, problems)
                        : ModelConfigReader.read(path, text, folder, "m", true, problems))
                .config();
        for (Problem problem : problems.list()) {
            if (problem.message().isBlank() || problem.message().length() > 2_000) {
                throw new AssertionError(
                        "a problem with a message of " + problem.message().length() + " characters");
            }
        }
        if (problems.hasErrors()) {
            return;
        }
        ModelConfig whole = config.maxBatchSize() < 0
                ? config.toBuilder().maxBatchSize(1 << 30).build()
                : config;
        Map<String, Object> document = ModelConfigDocument.of(whole);
        JsonWriter writer = new JsonWriter(256);
        JsonValues.write(writer, document, JsonValues.NonFinite.NULL);
        String json = new String(Arrays.copyOf(writer.array(), writer.length()), StandardCharsets.UTF_8);
        if (json.indexOf('\ufffd') >= 0 || json.contains("null")) {
            return; // Text that JSON cannot carry, or a bucket that is not finite.
        }
        ProblemCollector more = new ProblemCollector();
        ModelConfig again =
                ModelConfigReader.readJson(path, json, folder, "m", true, more).config();
        if (more.hasErrors() || !ModelConfigDocument.of(again).equals(document)) {
            throw new AssertionError("the document " + json + " is read as " + ModelConfigDocument.of(again)
                    + ", problems " + more.list());
        }
    }

    @Override
    public List<byte[]> seeds() {
        return FuzzTargets.texts(
                " {\"name\":\"m\",\"maxBatchSize\":8.0,\"input\":[{\"name\":\"a\",\"data_type\":11,\"dims\":[\"3\",-1]}],"
                        + "\"instance_group\":[{\"count\":2,\"kind\":\"KIND_CPU\",\"gpus\":[]}]}");
    }

    /** A problem quotes its line, and there may be a hundred. */
    @Override
    public long allocationLimit(int length) {
        return (8L << 20) + 4_000L * length;
    }
}
