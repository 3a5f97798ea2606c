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
 * The response cache in Redis. Callers never block: all commands run on the store's own threads, each with a
 * connection.
 *
 * <p>A cache must not make requests fail or slow. When the server cannot be reached, the store makes no attempts for a
 * second; in that time every lookup is a miss and nothing is stored. Values are also dropped when more than
 * {@value #MAX_PENDING_BYTES} bytes wait to be written. Both are counted as {@code skipped}.
 *
 * <p>Thread-safe.
 */
final class RedisCacheStore implements CacheStore {
    /** Maximum number of bytes that wait to be written. */
    static final long MAX_PENDING_BYTES = 64L << 20;

    /** The maximum size of a value in Redis. */
    private static final int MAX_VALUE = 512 << 20;

    private static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final Logger LOG = LoggerFactory.getLogger(RedisCacheStore.class);

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

    /** One or more commands on a connection. */
    private interface Commands {
        byte @Nullable [] execute(Connection connection);
    }

    RedisCacheStore(RedisSettings settings, Clock clock) {
        this.settings = settings;
        this.clock = clock;
        this.threads = Threads.pool("redis", settings.poolSize());
    }

    /**
     * Tries the connection once. A server that cannot be reached is only logged, since it may start later.
     *
     * @throws ServingException INVALID_ARGUMENT when the server rejects the user, password or database
     */
    void probe() {
        try {
            execute(c -> {
                c.sendCommand(Command.PING);
                return c.getBinaryBulkReply();
            });
        } catch (JedisDataException e) {
            close();
            throw ServingException.invalidArgument(
                    "redis at " + settings + " rejects the connection: " + e.getMessage(),
                    "check user, password and db of --cache-config, or TRITONCACHE_REDIS_USERNAME and _PASSWORD");
        } catch (JedisException e) {
            LOG.warn("redis at {} does not respond; nothing is cached until it does: {}", settings, e.getMessage());
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
                            : executeOrSkip(c -> {
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
        submit(() -> {
            try {
                executeOrSkip(c -> {
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
        submit(() -> executeOrSkip(c -> {
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

    private void submit(Runnable task) {
        try {
            threads.execute(task);
        } catch (RejectedExecutionException e) {
            skipped.increment();
        }
    }

    /** Returns the pattern that matches keys with a prefix; special characters of patterns are escaped. */
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

    /** Executes commands on one of the store's threads; returns null after an error, which is logged and counted. */
    private byte @Nullable [] executeOrSkip(Commands commands) {
        if (paused()) {
            return skip();
        }
        try {
            byte[] answer = execute(commands);
            if (down) {
                down = false;
                LOG.info("redis at {} responds again", settings);
            }
            return answer;
        } catch (RuntimeException e) {
            // An error of the cache must not fail the request, which is a miss then.
            errors.increment();
            if (e instanceof JedisConnectionException) {
                downUntil = clock.nanos() + PAUSE_NANOS;
                if (!down && !closed) {
                    down = true;
                    LOG.warn("redis at {} does not respond: {}", settings, e.getMessage());
                }
            } else {
                LOG.warn("redis at {}: {}", settings, e.getMessage());
            }
            return null;
        }
    }

    private byte @Nullable [] execute(Commands commands) {
        Connection connection = idle.poll();
        if (connection == null) {
            connection = connect();
        }
        boolean fine = false;
        try {
            byte[] answer = commands.execute(connection);
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
    public Map<String, Long> statistics() {
        Map<String, Long> metrics = new TreeMap<>();
        metrics.put("errors", errors.sum());
        metrics.put("skipped", skipped.sum());
        metrics.put("pending_bytes", pendingBytes.get());
        return metrics;
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
