// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.yaml;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.math.BigInteger;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Resolves plain scalars as Kubernetes does, by the rules of YAML 1.1. Stateless. */
final class YamlScalars {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    private static final Set<String> NULLS = Set.of("", "~", "null", "Null", "NULL");
    private static final Set<String> TRUES = Set.of("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON");
    private static final Set<String> FALSES = Set.of("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF");

    private static final Pattern DECIMAL = Pattern.compile("[-+]?(0|[1-9][0-9_]*)");
    private static final Pattern HEX = Pattern.compile("[-+]?0x[0-9a-fA-F_]+");
    private static final Pattern BINARY = Pattern.compile("[-+]?0b[01_]+");
    private static final Pattern OCTAL = Pattern.compile("[-+]?0o?[0-7_]+");
    private static final Pattern FLOAT = Pattern.compile("[-+]?(\\.[0-9]+|[0-9]+(\\.[0-9]*)?)([eE][-+]?[0-9]+)?");
    /** Infinities and NaN, which JSON cannot represent. */
    private static final Pattern NO_NUMBER = Pattern.compile("[-+]?\\.(inf|Inf|INF)|\\.(nan|NaN|NAN)");

    private YamlScalars() {}

    /**
     * The JSON value of a plain scalar; null when JSON cannot represent it. Anything that is not another type is a
     * string.
     */
    static @Nullable JsonNode resolve(String text) {
        if (NULLS.contains(text)) {
            return NODES.nullNode();
        }
        char first = text.charAt(0);
        if (TRUES.contains(text)) {
            return NODES.booleanNode(true);
        }
        if (FALSES.contains(text)) {
            return NODES.booleanNode(false);
        }
        if (text.length() > 400 || (first != '-' && first != '+' && first != '.' && (first < '0' || first > '9'))) {
            return NODES.textNode(text);
        }
        if (NO_NUMBER.matcher(text).matches()) {
            return null;
        }
        if (DECIMAL.matcher(text).matches()) {
            return integer(text, "", 10);
        }
        if (HEX.matcher(text).matches()) {
            return integer(text, "0x", 16);
        }
        if (BINARY.matcher(text).matches()) {
            return integer(text, "0b", 2);
        }
        if (OCTAL.matcher(text).matches()) {
            return integer(text, text.contains("o") ? "0o" : "0", 8);
        }
        if (FLOAT.matcher(text).matches()) {
            double value = Double.parseDouble(text);
            return Double.isInfinite(value) ? null : NODES.numberNode(value);
        }
        return NODES.textNode(text);
    }

    private static JsonNode integer(String text, String prefix, int radix) {
        String digits = text.replace("_", "").replace("+", "").replaceFirst(prefix, "");
        if (digits.isEmpty() || digits.equals("-")) {
            return NODES.textNode(text);
        }
        BigInteger value = new BigInteger(digits, radix);
        if (value.bitLength() < 32) {
            return NODES.numberNode(value.intValue());
        }
        return value.bitLength() < 64 ? NODES.numberNode(value.longValue()) : NODES.numberNode(value);
    }
}
