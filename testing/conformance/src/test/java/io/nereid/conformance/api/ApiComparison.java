// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance.api;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The difference between two versions of an API, as {@link ApiSignatures} writes them. A break is a change after which
 * code that was compiled against the old version no longer links, or no longer compiles. Immutable.
 *
 * <ul>
 *   <li>A type, constructor, method or field is gone, or has another type, parameter, nullness, type variable or constant
 *       value: its key is not there.
 *   <li>It became less visible, final, abstract or static, stopped being static, lost an interface or its superclass,
 *       became another kind of type, got another checked exception, or became experimental.
 *   <li>A type that others implement or extend has a new abstract method.
 * </ul>
 *
 * Everything else is an addition. What the old version marks as experimental cannot break.
 *
 * @param breaks one line for each
 * @param additions the other lines that differ, which the baseline must contain
 */
record ApiComparison(List<String> breaks, List<String> additions) {
    /** Properties whose appearance restricts callers or implementations. */
    private static final Set<String> RESTRICTIONS = Set.of("final", "abstract", "static", "sealed", "experimental");

    /** Properties that may disappear. */
    private static final Set<String> REMOVABLE = Set.of("final", "abstract", "sealed", "default", "experimental");

    static ApiComparison of(Map<String, Set<String>> old, Map<String, Set<String>> now) {
        List<String> breaks = new ArrayList<>();
        List<String> additions = new ArrayList<>();
        old.forEach((key, before) -> {
            Set<String> after = now.get(key);
            if (after != null && after.equals(before)) {
                return;
            }
            String difference = after == null ? "is gone" : restriction(before, after);
            if (difference.isEmpty() || before.contains("experimental")) {
                additions.add(key + (after == null ? " is gone" : " changed"));
            } else {
                breaks.add(key + ' ' + difference);
            }
        });
        now.forEach((key, after) -> {
            if (old.containsKey(key)) {
                return;
            }
            if (after.contains("abstract") && !after.contains("experimental") && open(old, owner(key))) {
                breaks.add(key + " is a new abstract method");
            } else {
                additions.add(key + " is new");
            }
        });
        return new ApiComparison(List.copyOf(breaks), List.copyOf(additions));
    }

    /** What a change of the properties takes away; empty when nothing. */
    private static String restriction(Set<String> before, Set<String> after) {
        List<String> restrictions = new ArrayList<>();
        Set<String> gained = new HashSet<>(after);
        gained.removeAll(before);
        for (String property : new java.util.TreeSet<>(gained)) {
            if (RESTRICTIONS.contains(property) || property.startsWith("throws:") || property.equals("protected")) {
                restrictions.add("became " + property);
            }
        }
        for (String property : before) {
            boolean wider = property.equals("protected") && after.contains("public");
            if (!after.contains(property)
                    && !wider
                    && !REMOVABLE.contains(property)
                    && !property.startsWith("throws:")) {
                restrictions.add("is no longer " + property);
            }
        }
        return String.join(", ", restrictions);
    }

    /** The type that declares a method: {@code method a.b.Type.name(...)}. */
    private static String owner(String key) {
        int from = key.indexOf(' ') + 1;
        int to = key.indexOf('(') < 0 ? key.length() : key.indexOf('(');
        int variables = key.indexOf('<');
        String name = key.substring(from, variables > 0 && variables < to ? variables : to);
        return name.substring(0, Math.max(0, name.lastIndexOf('.')));
    }

    /** Whether the old version has a type that code outside may implement or extend. */
    private static boolean open(Map<String, Set<String>> old, String type) {
        for (Map.Entry<String, Set<String>> line : old.entrySet()) {
            String key = line.getKey();
            boolean same = key.equals("type " + type) || key.startsWith("type " + type + "<");
            if (same && !line.getValue().contains("final") && !line.getValue().contains("sealed")) {
                return line.getValue().contains("interface")
                        || old.keySet().stream().anyMatch(k -> k.startsWith("constructor " + type + "("));
            }
        }
        return false;
    }
}
