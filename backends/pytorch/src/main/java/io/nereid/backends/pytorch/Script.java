// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * What the code inside a TorchScript archive tells of its {@code forward} method. Immutable.
 *
 * @param arguments those after {@code self}
 * @param returns the type of the answer, without blanks
 * @param names of the answers: keys of a dict, fields of a named tuple; empty when there are none or they cannot be told
 * @param count how many answers there are; -1 when it cannot be told
 * @param types the answers' types, where there is more than one and each has its own
 * @param mutates whether some code changes tensors in place
 */
record Script(
        List<Argument> arguments, String returns, List<String> names, int count, List<String> types, boolean mutates) {
    private static final Pattern IN_PLACE = Pattern.compile("torch\\.\\w*[a-z0-9]_\\(|[(, ]out=");
    private static final Pattern ATTRIBUTE_EMBEDDING = Pattern.compile(
            "(?m)^  (\\w+) : __torch__\\.torch\\.nn\\.modules\\.sparse\\.(?:___torch_mangle_\\d+\\.)?Embedding(?:Bag)?$");
    private static final Pattern KEY = Pattern.compile("\\s*\"((?:[^\"\\\\]|\\\\.)*)\"\\s*:.*", Pattern.DOTALL);

    /**
     * One argument.
     *
     * @param name its name
     * @param type its type, without blanks
     * @param otherwise its default as it is written; null when it must be given
     * @param index whether it looks up rows of a table
     */
    record Argument(String name, String type, @Nullable String otherwise, boolean index) {
        /** Whether it can be left out. */
        boolean optional() {
            return otherwise != null || type.startsWith("Optional[");
        }
    }

    boolean returnsDict() {
        return returns.startsWith("Dict[");
    }

    boolean returnsMany() {
        return returns.startsWith("Tuple[") || returns.startsWith("List[Tensor]") || returns.startsWith("__torch__");
    }

    /**
     * Reads a class.
     *
     * @param root the qualified name of the class
     * @param sources the code by file, {@code __torch__/a/b.py}
     * @return null when there is no such class, or it has no method of that name
     */
    static @Nullable Script read(String root, Map<String, String> sources) {
        String section = section(root, sources);
        int at = section == null ? -1 : section.indexOf("\n  def forward(");
        if (section == null || at < 0) {
            return null;
        }
        int open = section.indexOf('(', at);
        int close = closing(section, open);
        int arrow = section.indexOf("->", close);
        int end = arrow < 0 ? -1 : endOfType(section, arrow + 2);
        if (close < 0 || end < 0) {
            return null;
        }
        String body = body(section, end + 1);
        Set<String> tables = new HashSet<>();
        for (Matcher m = ATTRIBUTE_EMBEDDING.matcher(section); m.find(); ) {
            tables.add(m.group(1));
        }
        List<Argument> arguments = new ArrayList<>();
        for (String part : parts(section.substring(open + 1, close))) {
            int colon = part.indexOf(':');
            String name = (colon < 0 ? part : part.substring(0, colon)).strip();
            if (name.equals("self") || name.isEmpty()) {
                continue;
            }
            String rest = colon < 0 ? "Tensor" : part.substring(colon + 1);
            int equals = rest.indexOf('=');
            arguments.add(new Argument(
                    name,
                    compact(equals < 0 ? rest : rest.substring(0, equals)),
                    equals < 0 ? null : rest.substring(equals + 1).strip(),
                    looksUp(body, name, tables)));
        }
        String returns = compact(section.substring(arrow + 2, end));
        return answers(arguments, returns, body, sources);
    }

    private static Script answers(List<Argument> arguments, String returns, String body, Map<String, String> sources) {
        boolean mutates =
                sources.values().stream().anyMatch(s -> IN_PLACE.matcher(s).find());
        List<String> names = new ArrayList<>();
        List<String> types = new ArrayList<>();
        int count = 1;
        if (returns.startsWith("__torch__")) {
            count = -1;
            String named = section(returns, sources);
            if (named != null && named.contains("(NamedTuple)")) {
                for (String line : named.split("\n")) {
                    int colon = line.indexOf(" : ");
                    if (line.startsWith("  ") && colon > 0) {
                        names.add(line.substring(2, colon).strip());
                        types.add(compact(line.substring(colon + 3)));
                    }
                }
                count = names.size();
            }
        } else if (returns.startsWith("Tuple[")) {
            for (String type : parts(returns.substring("Tuple[".length(), returns.length() - 1))) {
                types.add(compact(type));
            }
            count = types.size();
        } else if (returns.startsWith("Dict[")) {
            for (String part : literal(body, '{')) {
                Matcher m = KEY.matcher(part);
                if (m.matches()) {
                    names.add(m.group(1));
                }
            }
            count = names.isEmpty() ? -1 : names.size();
        } else if (returns.equals("List[Tensor]")) {
            List<String> parts = literal(body, '[');
            count = parts.isEmpty() ? -1 : parts.size();
        }
        return new Script(List.copyOf(arguments), returns, List.copyOf(names), count, List.copyOf(types), mutates);
    }

    /** The parts of the literal that the only return statement gives back, directly or through a name. */
    private static List<String> literal(String body, char opening) {
        int at = body.lastIndexOf("\n    return ");
        if (at < 0 || body.indexOf("return ") < at) {
            return List.of();
        }
        int start = at + "\n    return ".length();
        if (start < body.length() && body.charAt(start) != opening) {
            Matcher name = Pattern.compile("\\w+").matcher(body).region(start, body.length());
            if (!name.lookingAt()) {
                return List.of();
            }
            String assigned = "\n    " + name.group() + " = " + opening;
            int from = body.lastIndexOf(assigned);
            if (from < 0) {
                return List.of();
            }
            start = from + assigned.length() - 1;
        }
        int close = closing(body, start);
        return close < 0 ? List.of() : parts(body.substring(start + 1, close));
    }

    private static boolean looksUp(String body, String argument, Set<String> tables) {
        for (String table : tables) {
            if (body.contains("(" + table + ").forward(" + argument + ",")
                    || body.contains("(" + table + ").forward(" + argument + ")")) {
                return true;
            }
        }
        return Pattern.compile("torch\\.embedding\\([^,()]+, " + Pattern.quote(argument) + "\\b")
                .matcher(body)
                .find();
    }

    /** The text of a class, from its line to the next one's. */
    private static @Nullable String section(String qualified, Map<String, String> sources) {
        int dot = qualified.lastIndexOf('.');
        String source = dot < 0 ? null : sources.get(qualified.substring(0, dot).replace('.', '/') + ".py");
        if (source == null) {
            return null;
        }
        String text = "\n" + source;
        int start = text.indexOf("\nclass " + qualified.substring(dot + 1) + "(");
        if (start < 0) {
            return null;
        }
        int end = start + 1;
        do {
            end = text.indexOf('\n', end);
            if (end < 0) {
                return text.substring(start);
            }
            end++;
        } while (end >= text.length()
                || !(text.startsWith("class ", end) || text.startsWith("def ", end) || text.startsWith("@", end)));
        return text.substring(start, end);
    }

    /** The lines of a method from a place on. */
    private static String body(String section, int from) {
        int next = section.indexOf("\n  def ", from);
        return section.substring(Math.min(from, section.length()), next < 0 ? section.length() : next);
    }

    private static int endOfType(String text, int from) {
        int depth = 0;
        for (int i = from; i < text.length(); i++) {
            char c = text.charAt(i);
            depth += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
            if (c == ':' && depth == 0) {
                return i;
            }
        }
        return -1;
    }

    /** Where a bracket closes, texts passed over; -1 when it does not. */
    private static int closing(String text, int open) {
        int depth = 0;
        boolean quoted = false;
        for (int i = open; i < text.length(); i++) {
            char c = text.charAt(i);
            if (quoted) {
                if (c == '\\') {
                    i++;
                } else if (c == '"') {
                    quoted = false;
                }
                continue;
            }
            switch (c) {
                case '"' -> quoted = true;
                case '(', '[', '{' -> depth++;
                case ')', ']', '}' -> {
                    if (--depth == 0) {
                        return i;
                    }
                }
                default -> {}
            }
        }
        return -1;
    }

    /** Cuts at the commas outside of brackets and texts. */
    private static List<String> parts(String text) {
        List<String> parts = new ArrayList<>();
        int depth = 0;
        int start = 0;
        boolean quoted = false;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (quoted) {
                if (c == '\\') {
                    i++;
                } else if (c == '"') {
                    quoted = false;
                }
            } else if (c == '"') {
                quoted = true;
            } else if (c == '(' || c == '[' || c == '{') {
                depth++;
            } else if (c == ')' || c == ']' || c == '}') {
                depth--;
            } else if (c == ',' && depth == 0) {
                parts.add(text.substring(start, i));
                start = i + 1;
            }
        }
        parts.add(text.substring(start));
        parts.removeIf(String::isBlank);
        return parts;
    }

    private static String compact(String type) {
        return type.replaceAll("\\s+", "");
    }
}
