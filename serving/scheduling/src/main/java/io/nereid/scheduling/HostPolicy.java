// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import java.util.BitSet;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import net.openhft.affinity.Affinity;

/**
 * A rule about the processors on which the runs of some models go on, by the name that instance groups use. Immutable.
 *
 * @param name as instance groups name it
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
     * Reads {@code NAME,cpu-cores=0-3,8}: numbers and ranges.
     *
     * @throws ServingException INVALID_ARGUMENT when it is something else, UNIMPLEMENTED for {@code numa-node}
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

    /** Binds the calling thread; quietly, since {@link #check} has said what there is to say. */
    void bind() {
        Affinity.setAffinity(cores());
    }

    /**
     * Tries the policy on a thread of its own.
     *
     * @throws ServingException FAILED_PRECONDITION when this machine has no such processors, or threads cannot be bound
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
