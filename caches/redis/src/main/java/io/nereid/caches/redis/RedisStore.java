// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.caches.redis;

import io.nereid.backend.CacheStore;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import redis.clients.jedis.Connection;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Protocol.Command;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;

/**
 * A store in Redis. Thread-safe: callers only hand work to a few threads of the store's own, each with a connection. A server
 * that cannot be reached is left alone for a while, during which nothing is found and nothing is kept; so is work beyond
 * {@value #MAX_PENDING_BYTES} bytes that wait to be written.
 */
final class RedisStore implements CacheStore {
    /** Bytes that may wait to be written. */
    static final long MAX_PENDING_BYTES = 64L << 20;

    /** What Redis takes as one value. */
    private static final int MAX_VALUE = 512 << 20;

    private static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final Logger LOG = LoggerFactory.getLogger(RedisStore.class);

    private final RedisSettings settings;
    private final Clock clock;
    private final ExecutorService threads;
    private final ConcurrentLinkedQueue<Connection> idle = new ConcurrentLinkedQueue<>();
    private final AtomicLong pendingBytes = new AtomicLong();
    private final LongAdder errors = new LongAdder();
    private final LongAdder skipped = new LongAdder();
    private volatile boolean closed;
    private volatile boolean down;
    private volatile long downUntil;

    /** What is done on a connection. */
    private interface Talk {
        byte @Nullable [] with(Connection connection);
    }

    RedisStore(RedisSettings settings, Clock clock) {
        this.settings = settings;
        this.clock = clock;
        this.threads = Threads.pool("redis", settings.poolSize());
    }

    /**
     * Tries the connection once. A server that cannot be reached may come later; one that refuses the user will not.
     *
     * @throws ServingException INVALID_ARGUMENT when the server refuses user, password or database
     */
    void probe() {
        try {
            talk(c -> {
                c.sendCommand(Command.PING);
                return c.getBinaryBulkReply();
            });
        } catch (JedisDataException e) {
            close();
            throw ServingException.invalidArgument(
                    "redis at " + settings + " refuses the connection: " + e.getMessage(),
                    "check user, password and db of --cache-config, or TRITONCACHE_REDIS_USERNAME and _PASSWORD");
        } catch (JedisException e) {
            LOG.warn("redis at {} does not answer; requests are computed until it does ({})", settings, e.getMessage());
        }
    }

    @Override
    public CompletionStage<byte @Nullable []> get(byte[] key) {
        if (paused()) {
            skipped.increment();
            return CompletableFuture.completedFuture(null);
        }
        CompletableFuture<byte @Nullable []> found = new CompletableFuture<>();
        long since = clock.nanos();
        try {
            threads.execute(() -> found.complete(
                    clock.nanos() - since > TimeUnit.MILLISECONDS.toNanos(settings.waitTimeoutMillis())
                            ? skip()
                            : ask(c -> {
                                c.sendCommand(Command.GET, key);
                                return c.getBinaryBulkReply();
                            })));
        } catch (RejectedExecutionException e) {
            found.complete(null);
        }
        return found;
    }

    private byte @Nullable [] skip() {
        skipped.increment();
        return null;
    }

    @Override
    public void put(byte[] key, byte[] value) {
        if (value.length > MAX_VALUE || paused()) {
            skipped.increment();
            return;
        }
        long size = (long) key.length + value.length;
        if (pendingBytes.addAndGet(size) > MAX_PENDING_BYTES) {
            pendingBytes.addAndGet(-size);
            skipped.increment();
            return;
        }
        work(() -> {
            try {
                ask(c -> {
                    c.sendCommand(Command.SET, key, value);
                    return c.getBinaryBulkReply();
                });
            } finally {
                pendingBytes.addAndGet(-size);
            }
        });
    }

    @Override
    public void purge(byte[] keyPrefix) {
        byte[] pattern = pattern(keyPrefix);
        work(() -> ask(c -> {
            byte[] cursor = {'0'};
            do {
                c.sendCommand(Command.SCAN, cursor, ascii("MATCH"), pattern, ascii("COUNT"), ascii("1000"));
                List<Object> reply = c.getObjectMultiBulkReply();
                cursor = (byte[]) reply.get(0);
                for (Object key : (List<?>) reply.get(1)) {
                    c.sendCommand(Command.UNLINK, (byte[]) key);
                    c.getIntegerReply();
                }
            } while (cursor.length != 1 || cursor[0] != '0');
            return null;
        }));
    }

    private void work(Runnable task) {
        try {
            threads.execute(task);
        } catch (RejectedExecutionException e) {
            skipped.increment();
        }
    }

    /** What matches keys that begin so: bytes that mean something in a pattern are escaped. */
    static byte[] pattern(byte[] prefix) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (byte b : prefix) {
            if (b == '*' || b == '?' || b == '[' || b == ']' || b == '\\' || b == '^' || b == '-') {
                out.write('\\');
            }
            out.write(b);
        }
        out.write('*');
        return out.toByteArray();
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private boolean paused() {
        return closed || (down && clock.nanos() - downUntil < 0);
    }

    /** Talks to the server; null when that fails. On one of the store's threads. */
    private byte @Nullable [] ask(Talk talk) {
        if (paused()) {
            return skip();
        }
        try {
            byte[] answer = talk(talk);
            if (down) {
                down = false;
                LOG.info("redis at {} answers again", settings);
            }
            return answer;
        } catch (RuntimeException e) {
            // Whatever it is, the request is computed.
            errors.increment();
            if (e instanceof JedisConnectionException) {
                downUntil = clock.nanos() + PAUSE_NANOS;
                if (!down && !closed) {
                    down = true;
                    LOG.warn("redis at {} does not answer: {}", settings, e.getMessage());
                }
            } else {
                LOG.warn("redis at {}: {}", settings, e.getMessage());
            }
            return null;
        }
    }

    private byte @Nullable [] talk(Talk talk) {
        Connection connection = idle.poll();
        if (connection == null) {
            connection = connect();
        }
        boolean fine = false;
        try {
            byte[] answer = talk.with(connection);
            fine = true;
            return answer;
        } finally {
            if (fine && !closed) {
                idle.add(connection);
            } else {
                connection.close();
            }
        }
    }

    private Connection connect() {
        return new Connection(
                new HostAndPort(settings.host(), settings.port()),
                DefaultJedisClientConfig.builder()
                        .user(settings.user())
                        .password(settings.password())
                        .database(settings.db())
                        .connectionTimeoutMillis(settings.connectTimeoutMillis())
                        .socketTimeoutMillis(settings.socketTimeoutMillis())
                        .build());
    }

    @Override
    public Map<String, Long> figures() {
        Map<String, Long> figures = new TreeMap<>();
        figures.put("errors", errors.sum());
        figures.put("skipped", skipped.sum());
        figures.put("pending_bytes", pendingBytes.get());
        return figures;
    }

    @Override
    public void close() {
        closed = true;
        threads.shutdown();
        for (Connection c = idle.poll(); c != null; c = idle.poll()) {
            c.close();
        }
    }
}
