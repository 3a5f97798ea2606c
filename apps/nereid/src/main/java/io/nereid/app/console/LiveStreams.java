// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.console;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The responses that go on: lines of JSON, at most once in a second, however much happens. All of them are written by one
 * timer, which exists only while a page is open. A client that does not take its lines misses some; it never makes the
 * server hold more than one piece for it. Thread-safe.
 */
final class LiveStreams implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(LiveStreams.class);
    private static final int MOST = 64;
    private static final long UNSENT_BYTES = 512 << 10;

    /** What one client receives. Called by the timer's thread. */
    interface Lines {
        /** The next lines, each ended by a line feed; empty for none now. */
        byte[] next();
    }

    private record Client(ResponseStream stream, Lines lines) {}

    private final List<Client> clients = new CopyOnWriteArrayList<>();
    private final Runnable beforeEach;
    private final int idleTicks;

    // guarded by this
    private @Nullable ScheduledExecutorService timer;
    private int idle;
    private boolean closed;

    /**
     * @param beforeEach runs before each round of lines, on the timer's thread
     * @param idleTicks how many seconds the timer goes on without a client, so that a page that is loaded again finds
     *     its history
     */
    LiveStreams(Runnable beforeEach, int idleTicks) {
        this.beforeEach = beforeEach;
        this.idleTicks = idleTicks;
    }

    /** Answers an exchange with lines until the client goes. */
    void open(HttpExchange x, Lines lines) {
        synchronized (this) {
            if (closed || clients.size() >= MOST) {
                throw closed
                        ? ServingException.of(ErrorCode.UNAVAILABLE, "the server is shutting down")
                        : ServingException.of(
                                ErrorCode.RESOURCE_EXHAUSTED,
                                "there are " + MOST + " open streams of the console",
                                "close a page of the console");
            }
            if (timer == null) {
                timer = Threads.timer("console");
                var unused = timer.scheduleWithFixedDelay(this::tick, 1, 1, TimeUnit.SECONDS);
            }
            idle = 0;
        }
        ResponseStream stream = x.stream(new HttpReply(
                200,
                "application/x-ndjson",
                new String[] {"cache-control", "no-store", "x-accel-buffering", "no"},
                new ResponseBody(new byte[0], 0)));
        Client client = new Client(stream, lines);
        clients.add(client);
        x.onCancel(() -> end(client));
        // The first lines at once: a page that opens does not wait a second for them.
        onTimer(() -> send(client));
    }

    /** Ends a stream, which the transport counts as in progress until then. */
    private void end(Client client) {
        if (clients.remove(client)) {
            onTimer(client.stream::end);
        }
    }

    /** Runs an action on the thread that writes the streams, which takes one call at a time. */
    private synchronized void onTimer(Runnable action) {
        if (timer == null) {
            action.run();
        } else {
            timer.execute(action);
        }
    }

    /** Whether a client is there. */
    boolean isWatched() {
        return !clients.isEmpty();
    }

    private void tick() {
        try {
            beforeEach.run();
        } catch (RuntimeException e) {
            LOG.error("the console's data could not be read", e);
        }
        clients.forEach(this::send);
        synchronized (this) {
            idle = clients.isEmpty() ? idle + 1 : 0;
            if (idle > idleTicks && timer != null) {
                timer.shutdown();
                timer = null;
            }
        }
    }

    private void send(Client client) {
        try {
            if (client.stream.unsentBytes() < UNSENT_BYTES) {
                byte[] lines = client.lines.next();
                client.stream.send(new ResponseBody(lines, lines.length));
            }
        } catch (RuntimeException e) {
            LOG.error("a stream of the console failed", e);
            clients.remove(client);
            client.stream.abort();
        }
    }

    /** Ends all streams, so that they do not hold up the end of the server. */
    @Override
    public void close() {
        synchronized (this) {
            closed = true;
        }
        clients.forEach(this::end);
        synchronized (this) {
            if (timer != null) {
                timer.shutdown();
                timer = null;
            }
        }
    }
}
