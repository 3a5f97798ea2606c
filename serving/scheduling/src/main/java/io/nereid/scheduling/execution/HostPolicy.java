// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import java.util.BitSet;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import net.openhft.affinity.Affinity;

/**
 * A host policy (Triton: {@code --host-policy}): the processors that run the instance groups which name the policy.
 * Immutable.
 *
 * @param name the name that instance groups refer to
 * @param cores the numbers of the processors
 */
public record HostPolicy(String name, BitSet cores) {
    /** Keeps its own copy of {@code cores}. */
    public HostPolicy {
        cores = (BitSet) cores.clone();
        if (name.isEmpty() || cores.isEmpty()) {
            throw new IllegalArgumentException("a host policy without " + (name.isEmpty() ? "a name" : "processors"));
        }
    }

    @Override
    public BitSet cores() {
        return (BitSet) cores.clone();
    }

    /**
     * Parses {@code NAME,cpu-cores=0-3,8}: numbers and ranges.
     *
     * @throws ServingException INVALID_ARGUMENT for any other form, UNIMPLEMENTED for {@code numa-node}
     */
    public static HostPolicy parse(String text) {
        String[] parts = text.split(",", 2);
        if (parts.length == 2 && parts[1].startsWith("numa-node=")) {
            throw ServingException.of(
                    ErrorCode.UNIMPLEMENTED,
                    "host policy '" + parts[0] + "' asks for " + parts[1] + ", which is not supported",
                    "name the node's processors with cpu-cores=");
        }
        String key = "cpu-cores=";
        BitSet cores = new BitSet();
        boolean fine = parts.length == 2 && !parts[0].isEmpty() && parts[1].startsWith(key);
        if (fine) {
            for (String range : parts[1].substring(key.length()).split(",", -1)) {
                fine &= addRange(range, cores);
            }
        }
        if (!fine) {
            throw ServingException.invalidArgument("host policy '" + text
                    + "' is not understood (expected NAME,cpu-cores=RANGES, for instance gold,cpu-cores=0-3,8)");
        }
        return new HostPolicy(parts[0], cores);
    }

    private static boolean addRange(String range, BitSet cores) {
        String[] ends = range.split("-", -1);
        try {
            int from = Integer.parseInt(ends[0]);
            int to = Integer.parseInt(ends[ends.length - 1]);
            if (ends.length > 2 || from < 0 || to < from || to >= 4096) {
                return false;
            }
            cores.set(from, to + 1);
            return true;
        } catch (NumberFormatException e) {
            return false;
        }
    }

    /** Binds the calling thread to the processors. Ignores failures, which {@link #check} has reported before. */
    void bind() {
        Affinity.setAffinity(cores());
    }

    /**
     * Tries the policy on a new thread, so that the calling thread is not bound.
     *
     * @throws ServingException FAILED_PRECONDITION when this machine does not have these processors, or threads
     *     cannot be bound to processors
     */
    void check() {
        CompletableFuture<BitSet> bound = new CompletableFuture<>();
        Threads.named("host-policy")
                .newThread(() -> {
                    try {
                        bind();
                        bound.complete(Affinity.getAffinity());
                    } catch (Throwable e) {
                        bound.completeExceptionally(e);
                    }
                })
                .start();
        BitSet seen = new BitSet();
        String why = "";
        try {
            seen = bound.join();
        } catch (RuntimeException e) {
            Throwable cause = e.getCause() == null ? e : e.getCause();
            why = ": " + cause.getMessage();
        }
        if (!seen.equals(cores)) {
            String system = System.getProperty("os.name", "this system");
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    String.format(
                            Locale.ROOT,
                            "host policy '%s' cannot bind threads to processors %s on %s with %d processors%s",
                            name,
                            cores,
                            system,
                            Runtime.getRuntime().availableProcessors(),
                            why),
                    "name processors that the process may use, on Linux, or leave the policy out");
        }
    }
}
