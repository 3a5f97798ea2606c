// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.config;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.io.StringReader;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.api.lowlevel.Compose;
import org.snakeyaml.engine.v2.exceptions.Mark;
import org.snakeyaml.engine.v2.exceptions.MarkedYamlEngineException;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;
import org.snakeyaml.engine.v2.nodes.MappingNode;
import org.snakeyaml.engine.v2.nodes.Node;
import org.snakeyaml.engine.v2.nodes.NodeTuple;
import org.snakeyaml.engine.v2.nodes.ScalarNode;
import org.snakeyaml.engine.v2.nodes.SequenceNode;
import org.snakeyaml.engine.v2.nodes.Tag;

/**
 * The entries of a configuration file: YAML whose keys are the names of options without their dashes, and whose values are a text, a
 * number, true or false, or a list of these.
 *
 * <pre>{@code
 * models: [/srv/models]
 * host: 0.0.0.0
 * drain-timeout: 10s
 * }</pre>
 *
 * Immutable.
 *
 * @param path the file, as it is shown in errors
 * @param entries by key, in the file's order
 */
record ConfigurationFile(Path path, Map<String, Entry> entries) {
    private static final int MOST_CHARACTERS = 1 << 20;

    ConfigurationFile {
        entries = Collections.unmodifiableMap(new LinkedHashMap<>(entries));
    }

    /**
     * One key with its values.
     *
     * @param list whether they were written as a list
     * @param line of the key, from 1
     * @param column of the key, from 1
     */
    record Entry(String key, List<String> values, boolean list, int line, int column) {}

    /**
     * Reads a file.
     *
     * @throws ServingException NOT_FOUND when the file cannot be read; INVALID_ARGUMENT with line and column when it is not valid
     */
    static ConfigurationFile read(Path path) {
        String text;
        try {
            text = Files.readString(path);
        } catch (NoSuchFileException e) {
            throw ServingException.wrap(ErrorCode.NOT_FOUND, "--config: the file '" + path + "' does not exist", e);
        } catch (CharacterCodingException e) {
            throw ServingException.wrap(ErrorCode.INVALID_ARGUMENT, "--config: '" + path + "' is not UTF-8 text", e);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.NOT_FOUND, "--config: cannot read '" + path + "': " + e.getMessage(), e);
        }
        Optional<Node> root;
        try {
            LoadSettings settings = LoadSettings.builder()
                    .setLabel(path.toString())
                    .setAllowDuplicateKeys(true) // reported here, with both places
                    .setCodePointLimit(MOST_CHARACTERS)
                    .build();
            root = new Compose(settings).composeReader(new StringReader(text));
        } catch (MarkedYamlEngineException e) {
            throw ServingException.wrap(ErrorCode.INVALID_ARGUMENT, at(path, e.getProblemMark()) + e.getProblem(), e);
        } catch (YamlEngineException e) {
            throw ServingException.wrap(ErrorCode.INVALID_ARGUMENT, path + ": " + e.getMessage(), e);
        }
        if (root.isEmpty()) {
            return new ConfigurationFile(path, Map.of());
        }
        if (!(root.get() instanceof MappingNode mapping)) {
            throw ServingException.invalidArgument(
                    at(path, root.get().getStartMark()) + "expected options with their values, such as 'port: 8080'");
        }
        Map<String, Entry> entries = new LinkedHashMap<>();
        for (NodeTuple tuple : mapping.getValue()) {
            Entry entry = entry(path, tuple);
            Entry before = entries.put(entry.key(), entry);
            if (before != null) {
                throw ServingException.invalidArgument(path + ":" + entry.line() + ":" + entry.column() + ": '"
                        + entry.key() + "' is there twice; the first is in line " + before.line());
            }
        }
        return new ConfigurationFile(path, entries);
    }

    /** The place of an entry, as editors take it: {@code FILE:LINE:COLUMN}. */
    String place(Entry entry) {
        return path + ":" + entry.line() + ":" + entry.column();
    }

    private static Entry entry(Path path, NodeTuple tuple) {
        Optional<Mark> mark = tuple.getKeyNode().getStartMark();
        if (!(tuple.getKeyNode() instanceof ScalarNode key)) {
            throw ServingException.invalidArgument(at(path, mark) + "expected the name of an option");
        }
        List<String> values = new ArrayList<>();
        boolean list = false;
        if (tuple.getValueNode() instanceof SequenceNode sequence) {
            list = true;
            for (Node element : sequence.getValue()) {
                values.add(value(path, key.getValue(), element));
            }
        } else {
            values.add(value(path, key.getValue(), tuple.getValueNode()));
        }
        return new Entry(
                key.getValue(),
                List.copyOf(values),
                list,
                mark.map(m -> m.getLine() + 1).orElse(0),
                mark.map(m -> m.getColumn() + 1).orElse(0));
    }

    private static String value(Path path, String key, Node node) {
        if (node instanceof ScalarNode scalar && !scalar.getTag().equals(Tag.NULL)) {
            return scalar.getValue();
        }
        throw ServingException.invalidArgument(at(path, node.getStartMark()) + "'" + key + "' "
                + (node instanceof ScalarNode
                        ? "has no value"
                        : "is a text, a number, true or false, or a list of these"));
    }

    private static String at(Path path, Optional<Mark> mark) {
        return mark.map(m -> path + ":" + (m.getLine() + 1) + ":" + (m.getColumn() + 1) + ": ")
                .orElse(path + ": ");
    }
}
