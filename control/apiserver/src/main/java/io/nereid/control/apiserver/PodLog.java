// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver;

import io.nereid.base.ServingException;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The lines of a pod as one client wants them, and those that come later. Thread-safe: one lock guards what was sent. */
final class PodLog {
    /** A client that is so far behind is cut off. */
    private static final long MOST_UNSENT = 16L << 20;

    private static final int FOLLOWED = 10_000;

    private final Supplier<List<String>> lines;
    private final boolean timestamps;
    private final @Nullable Instant since;
    private List<String> before = List.of();
    private @Nullable ResponseStream stream;
    private @Nullable Future<?> looks;
    private boolean ended;

    /**
     * A log.
     *
     * @param pods where its lines are
     * @param now which {@code sinceSeconds} counts from
     * @throws ServingException INVALID_ARGUMENT for a parameter that cannot be understood
     */
    PodLog(Pods pods, String namespace, String name, ApiRequest request, Instant now) {
        String container = request.query("container");
        if (container != null && !container.isEmpty() && !container.equals(Pods.CONTAINER)) {
            throw ServingException.invalidArgument(
                    "container " + container + " is not valid for pod " + name, "its container is " + Pods.CONTAINER);
        }
        if (request.flag("previous")) {
            throw ServingException.invalidArgument(
                    "previous terminated container \"" + Pods.CONTAINER + "\" in pod \"" + name + "\" not found",
                    "the lines of all starts of a revision are in one log; leave --previous out");
        }
        this.timestamps = request.flag("timestamps");
        long seconds = request.number("sinceSeconds", -1);
        String time = request.query("sinceTime");
        try {
            this.since = seconds >= 0
                    ? now.minusSeconds(seconds)
                    : time == null || time.isEmpty()
                            ? null
                            : OffsetDateTime.parse(time).toInstant();
        } catch (DateTimeException e) {
            throw ServingException.invalidArgument("sinceTime=" + time + " is not a time", "as 2026-01-31T12:00:00Z");
        }
        this.lines = () -> pods.tail(namespace, name, FOLLOWED);
    }

    /** What there is now. */
    synchronized String text(long most, long limitBytes) {
        before = lines.get();
        List<String> chosen = new ArrayList<>(before);
        chosen.removeIf(line -> {
            Instant at = since == null ? null : time(line);
            return at != null && at.isBefore(since);
        });
        StringBuilder text = new StringBuilder();
        int from = most < 0 ? 0 : (int) Math.max(0, chosen.size() - most);
        chosen.subList(from, chosen.size())
                .forEach(line -> text.append(shown(line)).append('\n'));
        byte[] bytes = text.toString().getBytes(StandardCharsets.UTF_8);
        return limitBytes < 0 || bytes.length <= limitBytes
                ? text.toString()
                : new String(bytes, 0, (int) limitBytes, StandardCharsets.UTF_8);
    }

    /** Each line begins with its time. */
    private static @Nullable Instant time(String line) {
        int blank = line.indexOf(' ');
        try {
            return blank < 0 ? null : Instant.parse(line.substring(0, blank));
        } catch (DateTimeException e) {
            return null;
        }
    }

    private String shown(String line) {
        return timestamps || time(line) == null ? line : line.substring(line.indexOf(' ') + 1);
    }

    /** Goes on over a stream. */
    synchronized void follow(ResponseStream over, Future<?> looking) {
        stream = over;
        looks = looking;
        if (ended) {
            release();
        }
    }

    /** Sends what is new; the stream ends with the pod. False when it goes on no more. */
    synchronized boolean look(boolean there) {
        ResponseStream to = stream;
        if (ended || to == null) {
            return !ended;
        }
        List<String> now = lines.get();
        StringBuilder text = new StringBuilder();
        if (!now.isEmpty()) {
            now.subList(overlap(before, now), now.size())
                    .forEach(line -> text.append(shown(line)).append('\n'));
            before = now;
        }
        if (!text.isEmpty()) {
            byte[] bytes = text.toString().getBytes(StandardCharsets.UTF_8);
            to.send(new ResponseBody(bytes, bytes.length));
        }
        if (to.unsentBytes() > MOST_UNSENT) {
            gone();
        } else if (!there) {
            end();
        }
        return !ended;
    }

    /** How many lines at the beginning of {@code now} are the end of {@code before}. */
    static int overlap(List<String> before, List<String> now) {
        for (int length = Math.min(before.size(), now.size()); length > 0; length--) {
            if (before.get(before.size() - length).equals(now.get(0))
                    && before.subList(before.size() - length, before.size()).equals(now.subList(0, length))) {
                return length;
            }
        }
        return 0;
    }

    /** Ends in good order. */
    synchronized void end() {
        if (!ended) {
            ended = true;
            if (stream != null) {
                stream.end();
            }
            release();
        }
    }

    /** Nobody listens any more. */
    synchronized void gone() {
        if (!ended) {
            ended = true;
            if (stream != null) {
                stream.abort();
            }
            release();
        }
    }

    private void release() {
        if (looks != null) {
            looks.cancel(false);
        }
    }
}
