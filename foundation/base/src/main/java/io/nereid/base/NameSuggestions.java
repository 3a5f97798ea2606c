// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

import java.util.Collection;
import java.util.Comparator;
import java.util.List;

/** Suggests known names for a misspelt one ("did you mean …?"). Immutable. */
public final class NameSuggestions {
    private NameSuggestions() {}

    /**
     * Returns the known names nearest to {@code given} by optimal string alignment distance, best first: at most
     * three, none whose distance exceeds a third of the length, and none that is more than two steps further than the
     * best: a name with one wrong letter has one meaning.
     */
    public static List<String> nearest(String given, Collection<String> known) {
        int limit = Math.max(1, given.length() / 3);
        record Candidate(String name, int distance) {}
        List<Candidate> near = known.stream()
                .map(name -> new Candidate(name, distance(given, name)))
                .filter(c -> c.distance <= limit)
                .sorted(Comparator.comparingInt(Candidate::distance).thenComparing(Candidate::name))
                .toList();
        return near.stream()
                .filter(c -> c.distance <= near.get(0).distance + 2)
                .limit(3)
                .map(Candidate::name)
                .toList();
    }

    /** Returns {@code "did you mean 'x' or 'y'?"}, or {@code otherwise} when no known name is near. */
    public static String didYouMean(String given, Collection<String> known, String otherwise) {
        List<String> names = nearest(given, known);
        return names.isEmpty() ? otherwise : "did you mean '" + String.join("' or '", names) + "'?";
    }

    /**
     * Optimal string alignment distance: insertions, deletions, substitutions and transpositions of neighbours each
     * cost 1.
     */
    private static int distance(String a, String b) {
        int[][] d = new int[a.length() + 1][b.length() + 1];
        for (int i = 0; i <= a.length(); i++) {
            d[i][0] = i;
        }
        for (int j = 0; j <= b.length(); j++) {
            d[0][j] = j;
        }
        for (int i = 1; i <= a.length(); i++) {
            for (int j = 1; j <= b.length(); j++) {
                int cost = a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1;
                d[i][j] = Math.min(Math.min(d[i - 1][j] + 1, d[i][j - 1] + 1), d[i - 1][j - 1] + cost);
                if (i > 1 && j > 1 && a.charAt(i - 1) == b.charAt(j - 2) && a.charAt(i - 2) == b.charAt(j - 1)) {
                    d[i][j] = Math.min(d[i][j], d[i - 2][j - 2] + 1);
                }
            }
        }
        return d[a.length()][b.length()];
    }
}
