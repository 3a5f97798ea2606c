// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.text;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.control.api.GoDuration;
import io.nereid.control.api.Quantity;
import io.nereid.control.graph.GjsonPath;
import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.FuzzTargets;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;

/**
 * Small languages in resources, of which the first character chooses one: durations, quantities, and the conditions of inference
 * graphs. Confined to one thread.
 */
public final class ScalarTarget implements FuzzTarget {
    private static final String ANSWER =
            "{\"a\":{\"b\":[1,2.5,{\"c\":\"x\",\"d\":true},null]},\"n\":\"7\",\"l\":[{\"v\":1},{\"v\":2}],\"a.b\":0}";

    private final JsonNode answer;

    public ScalarTarget() {
        try {
            answer = new ObjectMapper().readTree(ANSWER);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void read(byte[] input) {
        String text = new String(input, StandardCharsets.UTF_8);
        if (text.isEmpty()) {
            return;
        }
        String rest = text.substring(1);
        switch (text.charAt(0) % 3) {
            case 0 -> {
                Duration duration = GoDuration.parse(rest);
                if (duration != null) {
                    GoDuration.format(duration);
                }
            }
            case 1 -> {
                Quantity quantity = Quantity.parse(rest);
                quantity.units();
                quantity.amount();
            }
            default -> GjsonPath.parse(rest).find(answer);
        }
    }

    @Override
    public List<byte[]> seeds() {
        return FuzzTargets.texts(
                "c1h2m3.5s",
                "c-7ms",
                "c1µs",
                "d1.5Gi",
                "d100m",
                "d1e3",
                "d-2Ki",
                "ea.b.#(c==\"x\").d",
                "el.#(v>1)#.v",
                "ea.b.2.c",
                "ea\\.b",
                "el.#",
                "e{a.b,n}",
                "e[n,l.0]",
                "el.#(v%\"1*\")",
                "ea.*",
                "ea|b|0",
                "e@this");
    }

    /** Jazzer follows each step of a regular expression, and allocates for that. */
    @Override
    public long allocationLimit(int length) {
        return (32L << 20) + 256L * length;
    }
}
