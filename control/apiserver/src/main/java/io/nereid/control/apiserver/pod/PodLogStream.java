// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.pod;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ServingException;
import io.nereid.control.apiserver.http.ApiRequest;
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

/**
 * The log of a pod for one client: the lines that it selects by the request's parameters, and with {@code follow} later
 * lines as well. Thread-safe: one lock guards the state of the stream.
 */
final class PodLogStream {
    /** The maximum number of unsent bytes; a slower client is disconnected. */
    private static final long MOST_UNSENT = 16L << 20;

    private static final int FOLLOWED = 10_000;

    private final Supplier<List<String>> lines;
    private final boolean timestamps;
    private final @Nullable Instant since;

    @GuardedBy("this") private List<String> before = List.of();

    @GuardedBy("this") private @Nullable ResponseStream stream;

    @GuardedBy("this") private @Nullable Future<?> polls;

    @GuardedBy("this") private boolean ended;

    /**
     * Parses the parameters of a request.
     *
     * @param pods the source of the lines
     * @param now the time from which {@code sinceSeconds} counts back
     * @throws ServingException INVALID_ARGUMENT for an invalid parameter
     */
    PodLogStream(PodView pods, String namespace, String name, ApiRequest request, Instant now) {
        String container = request.query("container");
        if (container != null && !container.isEmpty() && !container.equals(PodView.CONTAINER)) {
            throw ServingException.invalidArgument(
                    "container " + container + " is not valid for pod " + name,
                    "its container is " + PodView.CONTAINER);
        }
        if (request.flag("previous")) {
            throw ServingException.invalidArgument(
                    "previous terminated container \"" + PodView.CONTAINER + "\" in pod \"" + name + "\" not found",
                    "the log contains the lines of all restarts of a revision; leave --previous out");
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

    /** The selected lines up to now. */
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

    /** The timestamp at the beginning of a line; null when there is none. */
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

    /** Starts to follow the log on a stream; {@code polling} is cancelled when the stream ends. */
    synchronized void follow(ResponseStream over, Future<?> polling) {
        stream = over;
        polls = polling;
        if (ended) {
            release();
        }
    }

    /**
     * Sends new lines, and ends the stream when the pod is gone.
     *
     * @param exists whether the pod still exists
     * @return whether the stream continues
     */
    synchronized boolean poll(boolean exists) {
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
            abort();
        } else if (!exists) {
            end();
        }
        return !ended;
    }

    /**
     * The number of lines at the beginning of {@code now} that are also the end of {@code before}. The source only
     * returns its last lines, so the new ones are found by comparison.
     */
    static int overlap(List<String> before, List<String> now) {
        for (int length = Math.min(before.size(), now.size()); length > 0; length--) {
            if (before.get(before.size() - length).equals(now.get(0))
                    && before.subList(before.size() - length, before.size()).equals(now.subList(0, length))) {
                return length;
            }
        }
        return 0;
    }

    /** Ends the response normally. */
    synchronized void end() {
        if (!ended) {
            ended = true;
            if (stream != null) {
                stream.end();
            }
            release();
        }
    }

    /** Aborts the response, because the client has disconnected or is too slow. */
    synchronized void abort() {
        if (!ended) {
            ended = true;
            if (stream != null) {
                stream.abort();
            }
            release();
        }
    }

    @GuardedBy("this") private void release() {
        if (polls != null) {
            polls.cancel(false);
        }
    }
}
