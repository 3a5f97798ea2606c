// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.yaml;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ValidationErrors;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.api.lowlevel.Parse;
import org.snakeyaml.engine.v2.common.Anchor;
import org.snakeyaml.engine.v2.events.AliasEvent;
import org.snakeyaml.engine.v2.events.Event;
import org.snakeyaml.engine.v2.events.MappingStartEvent;
import org.snakeyaml.engine.v2.events.NodeEvent;
import org.snakeyaml.engine.v2.events.ScalarEvent;
import org.snakeyaml.engine.v2.events.SequenceStartEvent;
import org.snakeyaml.engine.v2.exceptions.Mark;
import org.snakeyaml.engine.v2.exceptions.MarkedYamlEngineException;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;

/**
 * Builds JSON trees from YAML. It consumes the parser's events with a stack of its own instead of recursion, and counts
 * every node including those of expanded aliases, so that deep nesting and alias bombs are rejected instead of
 * exhausting stack or memory. Confined to one call of {@link #read}.
 */
final class YamlReader {
    private static final int MOST_NODES = 1_000_000;

    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    private final String where;
    private final Map<Anchor, Anchored> anchors = new HashMap<>();
    private final Deque<Frame> stack = new ArrayDeque<>();
    private final List<JsonNode> documents = new ArrayList<>();
    private int nodes;

    YamlReader(String where) {
        this.where = where;
    }

    /** An anchored node, and the number of nodes that each alias of it adds. */
    private record Anchored(JsonNode node, int size) {}

    /**
     * An object or list whose end event has not come yet. Exactly one of {@code object} and {@code array} is not null.
     */
    private static final class Frame {
        final @Nullable ObjectNode object;
        final @Nullable ArrayNode array;
        final @Nullable Anchor anchor;
        final int firstNode;
        final int line;

        @Nullable String key;

        /** The objects of merge keys ({@code <<}); earlier ones take precedence. */
        final List<ObjectNode> merged = new ArrayList<>();

        /** The keys so far with their lines, to detect duplicates. */
        final Map<String, Integer> keys = new LinkedHashMap<>();

        Frame(
                @Nullable ObjectNode object,
                @Nullable ArrayNode array,
                @Nullable Anchor anchor,
                int firstNode,
                int line) {
            this.object = object;
            this.array = array;
            this.anchor = anchor;
            this.firstNode = firstNode;
            this.line = line;
        }
    }

    List<JsonNode> read(String text) {
        LoadSettings settings = LoadSettings.builder()
                .setLabel(where)
                .setCodePointLimit(ManifestReader.MOST_CHARACTERS)
                .build();
        try {
            for (Event event : new Parse(settings).parseString(text)) {
                take(event);
            }
        } catch (MarkedYamlEngineException e) {
            Optional<Mark> mark = e.getProblemMark().or(e::getContextMark);
            String problem = e.getProblem() == null ? e.getContext() : e.getProblem();
            throw wrong(mark.map(Mark::getLine).orElse(0), problem + column(mark));
        } catch (YamlEngineException e) {
            throw ServingException.invalidArgument(where + ": not YAML: " + e.getMessage());
        }
        return documents;
    }

    private static String column(Optional<Mark> mark) {
        return mark.map(at -> ", at column " + (at.getColumn() + 1)).orElse("");
    }

    private void take(Event event) {
        switch (event.getEventId()) {
            case DocumentStart -> anchors.clear();
            case Scalar -> scalar((ScalarEvent) event);
            case Alias -> alias((AliasEvent) event);
            case MappingStart -> {
                MappingStartEvent start = (MappingStartEvent) event;
                tag(start.getTag(), "tag:yaml.org,2002:map", start);
                push(new Frame(NODES.objectNode(), null, start.getAnchor().orElse(null), nodes, line(start)), start);
            }
            case SequenceStart -> {
                SequenceStartEvent start = (SequenceStartEvent) event;
                tag(start.getTag(), "tag:yaml.org,2002:seq", start);
                push(new Frame(null, NODES.arrayNode(), start.getAnchor().orElse(null), nodes, line(start)), start);
            }
            case MappingEnd, SequenceEnd -> end(stack.pop(), event);
            default -> {} // comments, starts and ends of stream and document
        }
    }

    private void push(Frame frame, NodeEvent start) {
        if (stack.size() >= ManifestReader.MOST_DEPTH) {
            throw wrong(line(start), "nested deeper than " + ManifestReader.MOST_DEPTH + " levels");
        }
        Frame outer = stack.peek();
        if (outer != null && outer.object != null && outer.key == null) {
            throw wrong(line(start), "a key must be a string, not an object or a list");
        }
        count(1, line(start));
        stack.push(frame);
    }

    private void end(Frame frame, Event event) {
        // The object's own keys take precedence over merged ones, so merge only now that all of them are known.
        for (ObjectNode merged : frame.merged) {
            ObjectNode into = frame.object;
            if (into != null) {
                merged.properties().forEach(entry -> into.putIfAbsent(entry.getKey(), entry.getValue()));
            }
        }
        JsonNode node = frame.object == null ? frame.array : frame.object;
        if (node != null) {
            if (frame.anchor != null) {
                anchors.put(frame.anchor, new Anchored(node, nodes - frame.firstNode));
            }
            add(node, frame.line, line(event));
        }
    }

    private void scalar(ScalarEvent event) {
        Frame frame = stack.peek();
        if (frame != null && frame.object != null && frame.key == null) {
            key(frame, event);
            return;
        }
        count(1, line(event));
        JsonNode value = value(event);
        event.getAnchor().ifPresent(anchor -> anchors.put(anchor, new Anchored(value, 1)));
        add(value, line(event), line(event));
    }

    private void key(Frame frame, ScalarEvent event) {
        String key = event.getValue();
        frame.key = key;
        event.getAnchor().ifPresent(anchor -> anchors.put(anchor, new Anchored(NODES.textNode(key), 1)));
        if (key.equals("<<") && event.isPlain()) {
            return;
        }
        Integer before = frame.keys.put(key, line(event));
        if (before != null) {
            throw wrong(
                    line(event),
                    "the key \"" + ValidationErrors.clip(key) + "\" is duplicated, first in line " + (before + 1));
        }
        // A quoted << is an ordinary key. Keep its quotes until add(), which thereby distinguishes it from a merge key.
        frame.key = key.equals("<<") ? "\"<<\"" : key;
    }

    private void alias(AliasEvent event) {
        Anchored anchored = anchors.get(event.getAlias());
        if (anchored == null) {
            throw wrong(
                    line(event), "the alias *" + event.getAlias().getValue() + " names no anchor that ends before it");
        }
        Frame frame = stack.peek();
        if (frame != null && frame.object != null && frame.key == null) {
            if (!anchored.node.isTextual()) {
                throw wrong(line(event), "a key must be a string, not an object or a list");
            }
            frame.key = anchored.node.textValue();
            return;
        }
        // The copy keeps the tree free of shared nodes; counting its size first bounds the total after expansion.
        count(anchored.size, line(event));
        add(anchored.node.deepCopy(), line(event), line(event));
    }

    private void add(JsonNode node, int line, int lastLine) {
        Frame frame = stack.peek();
        if (frame == null) {
            documents.add(node);
        } else if (frame.array != null) {
            frame.array.add(node);
        } else if (frame.object != null) {
            String key = frame.key;
            frame.key = null;
            if ("<<".equals(key)) {
                merge(frame, node, line);
            } else if (key != null) {
                frame.object.set(key.equals("\"<<\"") ? "<<" : key, node);
            } else {
                throw wrong(lastLine, "a value without a key");
            }
        }
    }

    private void merge(Frame frame, JsonNode node, int line) {
        List<JsonNode> all = new ArrayList<>();
        if (node.isArray()) {
            node.forEach(all::add);
        } else {
            all.add(node);
        }
        for (JsonNode one : all) {
            if (!(one instanceof ObjectNode object)) {
                throw wrong(line, "<< takes an object or a list of objects, found " + ValidationErrors.shown(one));
            }
            frame.merged.add(object);
        }
    }

    private void count(int more, int line) {
        nodes += more;
        if (nodes > MOST_NODES || nodes < 0) {
            throw wrong(line, "more than " + MOST_NODES + " values, aliases counted each time");
        }
    }

    private void tag(Optional<String> tag, String expected, NodeEvent event) {
        if (tag.isPresent() && !tag.get().equals(expected) && !tag.get().equals("!")) {
            throw wrong(line(event), "the tag " + ValidationErrors.clip(tag.get()) + " is not supported");
        }
    }

    private JsonNode value(ScalarEvent event) {
        String text = event.getValue();
        String tag = event.getTag().orElse("");
        switch (tag) {
            case "" -> {
                return event.isPlain() ? plain(text, event) : NODES.textNode(text);
            }
            case "!", "tag:yaml.org,2002:str" -> {
                return NODES.textNode(text);
            }
            case "tag:yaml.org,2002:int",
                    "tag:yaml.org,2002:float",
                    "tag:yaml.org,2002:bool",
                    "tag:yaml.org,2002:null" -> {
                JsonNode node = plain(text, event);
                if (node instanceof TextNode) {
                    throw wrong(line(event), ValidationErrors.shown(node) + " is not of the type " + tag);
                }
                return node;
            }
            default -> throw wrong(line(event), "the tag " + ValidationErrors.clip(tag) + " is not supported");
        }
    }

    private JsonNode plain(String text, ScalarEvent event) {
        JsonNode node = YamlScalars.resolve(text);
        if (node == null) {
            throw wrong(
                    line(event),
                    ValidationErrors.clip(text) + " cannot be written in JSON; put it in quotes if it is a string");
        }
        return node;
    }

    private static int line(Event event) {
        return event.getStartMark().map(Mark::getLine).orElse(0);
    }

    private ServingException wrong(int line, String problem) {
        return ServingException.invalidArgument(where + ":" + (line + 1) + ": " + problem);
    }
}
