// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.schema;

import io.nereid.base.NameSuggestions;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.problem.SourcePosition;
import io.nereid.repository.schema.ConfigSchema.Cardinality;
import io.nereid.repository.schema.ConfigSchema.Field;
import io.nereid.repository.schema.ConfigSchema.Support;
import io.nereid.repository.schema.TypedMessage.Entry;
import io.nereid.repository.schema.TypedMessage.Value;
import io.nereid.repository.textformat.TextFormatNode;
import io.nereid.repository.textformat.TextFormatNode.Block;
import io.nereid.repository.textformat.TextFormatNode.Kind;
import io.nereid.repository.textformat.TextFormatNode.Scalar;
import java.math.BigInteger;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Binds a syntax tree to a schema: converts the values to the types of their fields, and reports fields that are
 * unknown, of the wrong type, given twice, or not supported. Continues after each problem, so that all are reported
 * together. Confined to one thread.
 */
public final class ConfigBinder {
    private static final BigInteger UINT64_MAX = BigInteger.ONE.shiftLeft(64).subtract(BigInteger.ONE);
    private static final int LONGEST_GUESSED = 64;

    private final ConfigSchema schema;
    private final Path file;
    private final ProblemCollector problems;

    public ConfigBinder(ConfigSchema schema, Path file, ProblemCollector problems) {
        this.schema = schema;
        this.file = file;
        this.problems = problems;
    }

    public TypedMessage bind(List<TextFormatNode.Field> fields) {
        return bind(fields, schema.root(), "", new SourcePosition(1, 1));
    }

    private TypedMessage bind(List<TextFormatNode.Field> fields, String type, String path, SourcePosition at) {
        Map<String, Field> known = Objects.requireNonNull(schema.fields(type));
        TypedMessage bound = new TypedMessage(at);
        Map<String, TextFormatNode.Field> oneofs = new HashMap<>();
        for (TextFormatNode.Field given : fields) {
            if (problems.full()) {
                break;
            }
            Field field = known.get(given.name());
            if (field == null) {
                unknown(given, type, path, known.keySet());
            } else if (check(given, field, type, path, oneofs, bound)) {
                values(given, field, type, path, bound);
            }
        }
        return bound;
    }

    private void unknown(TextFormatNode.Field given, String type, String path, Collection<String> known) {
        List<String> homes = path.isEmpty() ? schema.parentsOf(given.name()) : List.of();
        String otherwise;
        if (!homes.isEmpty()) {
            otherwise = "it belongs into '" + String.join("' or '", homes) + "'";
        } else if (known.isEmpty()) {
            otherwise = "remove it, '" + type + "' has no fields";
        } else {
            otherwise = "fields of " + (path.isEmpty() ? schema.title() : "'" + parent(path) + "'") + ": "
                    + String.join(", ", known);
        }
        problems.error(
                file,
                given.at(),
                "unknown field " + ProblemCollector.quote(given.name())
                        + (path.isEmpty() ? "" : " in '" + parent(path) + "'"),
                guess(given.name(), known, otherwise));
    }

    private static String parent(String path) {
        return path.substring(0, path.length() - 1);
    }

    /** Suggests the nearest known name; very long names are not compared, since that would take too long. */
    private static String guess(String given, Collection<String> known, String otherwise) {
        return given.length() > LONGEST_GUESSED ? otherwise : NameSuggestions.didYouMean(given, known, otherwise);
    }

    private boolean check(
            TextFormatNode.Field given,
            Field field,
            String type,
            String path,
            Map<String, TextFormatNode.Field> oneofs,
            TypedMessage bound) {
        if (field.support() == Support.REJECTED
                && !(field.cardinality() != Cardinality.ONE && given.values().isEmpty())) {
            unsupported(given.at(), type, path, field.name());
            return false;
        }
        if (!field.oneof().isEmpty()) {
            TextFormatNode.Field other = oneofs.putIfAbsent(field.oneof(), given);
            if (other != null && !other.name().equals(given.name())) {
                problems.error(
                        file,
                        given.at(),
                        "'" + given.name() + "' cannot be given together with '" + other.name() + "' of line "
                                + other.at().line(),
                        "remove one of them");
                return false;
            }
        }
        if (field.cardinality() == Cardinality.ONE) {
            Value earlier = bound.first(field.name());
            if (earlier != null) {
                problems.error(
                        file,
                        given.at(),
                        "'" + given.name() + "' is given twice, first in line "
                                + earlier.at().line() + " (expected: once)",
                        "remove one of them");
                return false;
            }
            if (given.list()) {
                problems.error(
                        file,
                        given.at(),
                        "'" + given.name() + "' is a list (expected: one value)",
                        "remove the brackets");
                return false;
            }
        }
        return true;
    }

    private void values(TextFormatNode.Field given, Field field, String type, String path, TypedMessage bound) {
        List<Value> values = new ArrayList<>(given.values().size());
        for (TextFormatNode raw : given.values()) {
            if (problems.full()) {
                return;
            }
            Object value = field.cardinality() == Cardinality.MAP
                    ? entry(raw, field, path)
                    : value(raw, given, field.name(), field.type(), path);
            if (value == null) {
                bound.faulty().add(field.name());
                continue;
            }
            if (field.support() == Support.ONLY_DEFAULT && !isDefault(value, field)) {
                unsupported(given.at(), type, path, field.name());
            } else {
                values.add(new Value(value, raw.at()));
            }
        }
        if (!values.isEmpty()) {
            bound.fields().computeIfAbsent(field.name(), n -> new ArrayList<>()).addAll(values);
        }
    }

    private void unsupported(SourcePosition at, String type, String path, String field) {
        UnsupportedFields.Reason reason = UnsupportedFields.of(type, field);
        problems.error(file, at, "field '" + path + field + "' is not supported, " + reason.why(), reason.remedy());
    }

    private boolean isDefault(Object value, Field field) {
        List<String> names = schema.enumeration(field.type());
        return value.equals(0L)
                || value.equals(0.0)
                || value.equals("")
                || value.equals(false)
                || (names != null && value.equals(names.get(0)));
    }

    private @Nullable Entry entry(TextFormatNode raw, Field field, String path) {
        if (!(raw instanceof Block block)) {
            problems.error(
                    file,
                    raw.at(),
                    "a member of '" + field.name() + "' is not a block",
                    "write '" + field.name() + " { key: … value: … }'");
            return null;
        }
        Object key = null;
        Object value = null;
        boolean wrong = false;
        for (TextFormatNode.Field part : block.fields()) {
            boolean isKey = part.name().equals("key");
            if (!isKey && !part.name().equals("value")) {
                unknown(part, field.name(), path + field.name() + ".", List.of("key", "value"));
                wrong = true;
            } else if (part.list() || (isKey ? key : value) != null) {
                problems.error(
                        file,
                        part.at(),
                        "'" + part.name() + "' of '" + field.name() + "' has more than one value",
                        null);
                wrong = true;
            } else if (isKey) {
                key = value(part.values().get(0), part, "key", field.keyType(), path + field.name() + ".");
                wrong |= key == null;
            } else {
                value = value(part.values().get(0), part, "value", field.type(), path + field.name() + ".");
                wrong |= value == null;
            }
        }
        if (wrong) {
            return null;
        }
        if (value == null) {
            value = schema.fields(field.type()) != null ? new TypedMessage(block.at()) : "";
        }
        return new Entry(key == null ? "" : key.toString(), value);
    }

    private @Nullable Object value(
            TextFormatNode raw, TextFormatNode.Field given, String name, String type, String path) {
        boolean message = schema.fields(type) != null;
        if (raw instanceof Block block) {
            if (message) {
                return bind(block.fields(), type, path + name + ".", block.at());
            }
            problems.error(
                    file,
                    raw.at(),
                    "'" + name + "' is a block (expected: " + article(type) + ")",
                    "write '" + name + ": …'");
            return null;
        }
        Scalar scalar = (Scalar) raw;
        if (message) {
            problems.error(
                    file,
                    raw.at(),
                    ProblemCollector.quote(scalar.shown()) + " is not a value of '" + name + "' (expected: a block)",
                    "write '" + name + " { … }'");
            return null;
        }
        if (!given.colon()) {
            problems.error(file, given.at(), "no colon after '" + name + "'", "write '" + name + ": …'");
            return null;
        }
        Object value = scalar(scalar, type);
        if (value == null) {
            List<String> names = schema.enumeration(type);
            problems.error(
                    file,
                    raw.at(),
                    ProblemCollector.quote(scalar.shown()) + " is not a value of '" + name + "' (expected: "
                            + article(type) + ")",
                    names == null ? hint(scalar, type) : enumHint(scalar, names));
        }
        return value;
    }

    private static @Nullable String hint(Scalar scalar, String type) {
        if (type.equals("string")) {
            return "put it into quotes: \"" + scalar.text() + '"';
        }
        return scalar.kind() == Kind.STRING ? "write it without quotes" : null;
    }

    private static String enumHint(Scalar scalar, List<String> names) {
        String text = scalar.text();
        String prefix = names.get(0).substring(0, names.get(0).indexOf('_') + 1);
        String prefixed = prefix + (text.equals("BYTES") && prefix.equals("TYPE_") ? "STRING" : text);
        if (names.contains(text)) {
            return "write it without quotes";
        }
        return names.contains(prefixed)
                ? "did you mean '" + prefixed + "'?"
                : guess(text, names, "one of " + String.join(", ", names));
    }

    private String article(String type) {
        return switch (type) {
            case "string" -> "a string in quotes";
            case "bool" -> "true or false";
            case "float", "double" -> "a number";
            case "int32" -> "a whole number of 32 bits";
            case "uint32" -> "a whole number from 0 to 4294967295";
            case "int64" -> "a whole number of 64 bits";
            case "uint64" -> "a whole number from 0 to 18446744073709551615";
            default -> "a name of " + type;
        };
    }

    private @Nullable Object scalar(Scalar s, String type) {
        List<String> names = schema.enumeration(type);
        if (names != null) {
            return enumeration(s, names);
        }
        return switch (type) {
            case "string" -> s.kind() == Kind.STRING ? s.text() : null;
            case "bool" -> bool(s);
            case "float", "double" -> floating(s);
            case "int32" -> integer(s, BigInteger.valueOf(Integer.MIN_VALUE), BigInteger.valueOf(Integer.MAX_VALUE));
            case "uint32" -> integer(s, BigInteger.ZERO, BigInteger.valueOf(0xffffffffL));
            case "int64" -> integer(s, BigInteger.valueOf(Long.MIN_VALUE), BigInteger.valueOf(Long.MAX_VALUE));
            case "uint64" -> integer(s, BigInteger.ZERO, UINT64_MAX);
            default -> null;
        };
    }

    private static @Nullable Object enumeration(Scalar s, List<String> names) {
        if (s.kind() == Kind.WORD) {
            return !s.negative() && names.contains(s.text()) ? s.text() : null;
        }
        Long number = integer(s, BigInteger.ZERO, BigInteger.valueOf(names.size() - 1L));
        return number == null ? null : names.get(number.intValue());
    }

    private static @Nullable Boolean bool(Scalar s) {
        if (s.negative() || s.kind() == Kind.STRING) {
            return null;
        }
        return switch (s.text()) {
            case "true", "True", "t", "1" -> true;
            case "false", "False", "f", "0" -> false;
            default -> null;
        };
    }

    private static @Nullable Double floating(Scalar s) {
        String text = s.text();
        double value;
        if (s.kind() == Kind.STRING) {
            return null;
        } else if (s.kind() == Kind.WORD) {
            switch (text.toLowerCase(java.util.Locale.ROOT)) {
                case "inf", "infinity" -> value = Double.POSITIVE_INFINITY;
                case "nan" -> value = Double.NaN;
                default -> {
                    return null;
                }
            }
        } else if (text.matches("[0-9]*\\.?[0-9]*([eE][-+]?[0-9]+)?[fF]?")) {
            value = Double.parseDouble(text);
        } else {
            return null;
        }
        return s.negative() ? -value : value;
    }

    /** An integer within bounds; one beyond 63 bits, which only an unsigned field allows, becomes Long.MAX_VALUE. */
    private static @Nullable Long integer(Scalar s, BigInteger least, BigInteger most) {
        if (s.kind() != Kind.NUMBER) {
            return null;
        }
        String text = s.text();
        BigInteger value;
        try {
            if (text.startsWith("0x") || text.startsWith("0X")) {
                value = new BigInteger(text.substring(2), 16);
            } else if (text.length() > 1 && text.charAt(0) == '0') {
                value = new BigInteger(text, 8);
            } else {
                value = new BigInteger(text);
            }
        } catch (NumberFormatException e) {
            return null;
        }
        if (s.negative()) {
            value = value.negate();
        }
        if (value.compareTo(least) < 0 || value.compareTo(most) > 0) {
            return null;
        }
        return value.bitLength() > 63 ? Long.MAX_VALUE : value.longValue();
    }
}
