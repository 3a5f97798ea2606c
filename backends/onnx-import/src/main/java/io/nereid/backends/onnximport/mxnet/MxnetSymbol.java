// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.mxnet;

import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * An MXNet graph, read from a {@code -symbol.json} document. Immutable.
 *
 * @param nodes operators and variables, in topological order
 * @param heads the outputs
 */
record MxnetSymbol(List<Node> nodes, List<Entry> heads) {
    /**
     * An operator, or a variable (an input or a weight), whose {@code op} is the string {@code null}.
     *
     * @param op the operator's type
     * @param name its name
     * @param settings its parameters, as strings
     * @param inputs its inputs
     */
    record Node(String op, String name, Map<String, String> settings, List<Entry> inputs) {
        boolean given() {
            return op.equals("null");
        }
    }

    /**
     * An output of a node.
     *
     * @param node the node's index
     * @param output the index among the node's outputs
     */
    record Entry(int node, int output) {}

    /** @throws ServingException INVALID_ARGUMENT when the document is not a graph */
    static MxnetSymbol parse(byte[] document) {
        JsonReader in = new JsonReader();
        in.reset(Arrays.copyOf(document, document.length + JsonReader.SLACK), 0, document.length);
        List<Node> nodes = new ArrayList<>();
        List<Entry> heads = new ArrayList<>();
        in.beginObject();
        while (in.nextField()) {
            if (in.keyEquals("nodes")) {
                in.beginArray();
                while (in.hasNext()) {
                    nodes.add(node(in));
                }
            } else if (in.keyEquals("heads")) {
                heads.addAll(entries(in));
            } else {
                in.skipValue();
            }
        }
        in.expectEnd();
        for (int i = 0; i < nodes.size(); i++) {
            check(nodes.get(i).inputs(), i);
        }
        check(heads, nodes.size());
        return new MxnetSymbol(List.copyOf(nodes), List.copyOf(heads));
    }

    /** Checks that entries refer to nodes before {@code end}, so that the graph has no cycles. */
    private static void check(List<Entry> entries, int end) {
        for (Entry e : entries) {
            if (e.node() < 0 || e.node() >= end || e.output() < 0) {
                throw ServingException.invalidArgument(
                        "it refers to node " + e.node() + ", expected one of the " + end + " before");
            }
        }
    }

    private static Node node(JsonReader in) {
        String op = "";
        String name = "";
        Map<String, String> settings = new LinkedHashMap<>();
        List<Entry> inputs = List.of();
        in.beginObject();
        while (in.nextField()) {
            if (in.keyEquals("op")) {
                op = in.readString();
            } else if (in.keyEquals("name")) {
                name = in.readString();
            } else if (in.keyEquals("inputs")) {
                inputs = entries(in);
            } else if (in.keyEquals("attrs") || in.keyEquals("attr") || in.keyEquals("param")) {
                in.beginObject();
                while (in.nextField()) {
                    String key = in.key();
                    settings.put(key, in.readString());
                }
            } else {
                in.skipValue();
            }
        }
        return new Node(op, name, settings, inputs);
    }

    private static List<Entry> entries(JsonReader in) {
        List<Entry> entries = new ArrayList<>();
        in.beginArray();
        while (in.hasNext()) {
            int[] numbers = new int[2];
            int n = 0;
            in.beginArray();
            while (in.hasNext()) {
                int value = in.readInt();
                if (n < 2) {
                    numbers[n++] = value;
                }
            }
            entries.add(new Entry(numbers[0], numbers[1]));
        }
        return List.copyOf(entries);
    }
}
