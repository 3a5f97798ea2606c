// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.access;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.operator.access.AccessApi.Identity;
import io.nereid.control.operator.access.AccessApi.Right;
import io.nereid.control.operator.access.ReviewedCaller.Decision;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Remembers for a limited time what the API server says of callers, and asks it when that is over. The key is the SHA-256
 * of the token; the token itself is kept only while the API server is asked about it. There is one request at a time about
 * one token, and a limited number of them about all. Answers that are used are asked for again before they end, so that
 * requests seldom wait; while the API server is away, they hold for their time.
 *
 * <p>Thread-safe; {@link #ask} does not block.
 */
final class AccessReviews implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(AccessReviews.class);

    /** Tokens that are remembered. */
    static final int MOST_TOKENS = 10_000;

    /** Rights that are remembered for one token. */
    static final int MOST_RIGHTS = 1_000;

    /** Tokens that wait to be asked about; each has at least one request. */
    private static final int MOST_QUEUED = 1_000;

    /** Requests that wait for the answer about one token. */
    private static final int MOST_WAITING = 1_000;

    private static final int THREADS = 4;

    /** The longest time for which a refusal is used, so that a right that was just granted soon holds. */
    private static final Duration LONGEST_REFUSAL = Duration.ofSeconds(10);

    /** How long the API server is not asked after it has failed to answer. */
    private static final Duration PAUSE = Duration.ofSeconds(1);

    private static final Duration LOG_PAUSE = Duration.ofSeconds(10);

    private final AccessApi api;
    private final List<String> audiences;
    private final long cacheNanos;
    private final long refusalNanos;
    private final Clock clock;
    private final ThreadPoolExecutor pool = Threads.pool("access-review", THREADS);
    private final Map<Key, Token> tokens = new ConcurrentHashMap<>();
    private final AtomicLong loggedAt;

    /** No request before this time, after the API server has failed to answer. */
    private volatile long pausedUntil;

    final LongAdder tokenReviews = new LongAdder();
    final LongAdder accessReviews = new LongAdder();
    final LongAdder failures = new LongAdder();
    final LongAdder remembered = new LongAdder();

    AccessReviews(AccessApi api, AccessReviewOptions options, Clock clock) {
        this.api = api;
        this.audiences = options.audiences();
        this.cacheNanos = options.cache().toNanos();
        this.refusalNanos = Math.min(cacheNanos, LONGEST_REFUSAL.toNanos());
        this.clock = clock;
        this.pausedUntil = clock.nanos();
        this.loggedAt = new AtomicLong(clock.nanos() - LOG_PAUSE.toNanos());
    }

    /** The SHA-256 of a token. */
    private record Key(long a, long b, long c, long d) {
        static Key of(String token) {
            try {
                ByteBuffer hash = ByteBuffer.wrap(
                        MessageDigest.getInstance("SHA-256").digest(token.getBytes(StandardCharsets.UTF_8)));
                return new Key(hash.getLong(), hash.getLong(), hash.getLong(), hash.getLong());
            } catch (NoSuchAlgorithmException e) {
                throw new IllegalStateException("every Java platform has SHA-256", e);
            }
        }
    }

    /** An answer that holds until some time. Immutable. */
    private record Answer(boolean yes, long until, long refreshAt) {
        boolean holds(long now) {
            return now - until < 0;
        }
    }

    /** What is known of one token. Guarded by this. */
    private static final class Token {
        @Nullable Identity identity;

        /** Whether the token is valid; null as long as the API server has not said. */
        @Nullable Answer valid;

        final Map<Right, Answer> rights = new HashMap<>();
        final ArrayDeque<ReviewedCaller> waiting = new ArrayDeque<>();

        /** Whether a thread asks about it, or will soon. */
        boolean busy;
    }

    /**
     * Decides whether the holder of a token has all rights: at once by what is remembered, otherwise later.
     *
     * @param caller gets the decision
     */
    void ask(String token, List<Right> rights, ReviewedCaller caller) {
        if (tokens.size() >= MOST_TOKENS) {
            shrink();
        }
        Token known = tokens.computeIfAbsent(Key.of(token), k -> new Token());
        Decision decision;
        boolean start = false;
        synchronized (known) {
            long now = clock.nanos();
            decision = decide(known, rights, now);
            if (decision != null) {
                remembered.increment();
                start = !known.busy && isOld(known, rights, now) && now - pausedUntil >= 0;
            } else if (now - pausedUntil < 0) {
                decision = new Decision(null, away());
            } else if (known.waiting.size() >= MOST_WAITING) {
                decision = new Decision(null, busy());
            } else {
                known.waiting.add(caller);
                start = !known.busy;
            }
            known.busy |= start;
        }
        if (decision != null) {
            caller.decide(decision);
        }
        if (start) {
            start(known, token, rights);
        }
    }

    private void start(Token known, String token, List<Right> refreshed) {
        ServingException e = null;
        if (pool.getQueue().size() >= MOST_QUEUED) {
            e = busy();
        } else {
            try {
                pool.execute(() -> run(known, token, refreshed));
            } catch (RejectedExecutionException stopping) {
                e = ServingException.of(ErrorCode.UNAVAILABLE, "the gateway is stopping", "try again");
            }
        }
        if (e != null) {
            fail(known, e);
        }
    }

    private static ServingException busy() {
        return ServingException.of(
                ErrorCode.UNAVAILABLE, "too many callers wait to be reviewed by the API server", "try again later");
    }

    private static ServingException away() {
        return ServingException.of(
                ErrorCode.UNAVAILABLE,
                "the Kubernetes API server cannot review the caller at present",
                "try again in some seconds");
    }

    /** Decides by what is known; null when that is not enough. */
    private @Nullable Decision decide(Token known, List<Right> rights, long now) {
        Answer valid = known.valid;
        if (valid == null || !valid.holds(now)) {
            return null;
        }
        Identity identity = known.identity;
        if (identity == null) {
            return new Decision(
                    null,
                    ServingException.of(
                            ErrorCode.UNAUTHENTICATED,
                            "the token is not valid"
                                    + (audiences.isEmpty()
                                            ? " for the cluster's API server"
                                            : " for the audience " + String.join(" or ", audiences)),
                            "send a token of a service account of this cluster in the header 'authorization: Bearer …'"));
        }
        for (Right right : rights) {
            Answer answer = known.rights.get(right);
            if (answer == null || !answer.holds(now)) {
                return null;
            }
            if (!answer.yes) {
                return new Decision(
                        identity.name(),
                        ServingException.of(
                                ErrorCode.PERMISSION_DENIED,
                                "user \"" + identity.name() + "\" may not " + right.text(),
                                "grant it the verb with a Role and a RoleBinding"));
            }
        }
        return new Decision(identity.name(), null);
    }

    private static boolean isOld(Token known, List<Right> rights, long now) {
        return next(known, rights, now, true) != null || validIsOld(known, now);
    }

    private static boolean validIsOld(Token known, long now) {
        Answer valid = known.valid;
        return valid == null || now - valid.refreshAt >= 0;
    }

    /** The first right whose answer is missing, over, or old. */
    private static @Nullable Right next(Token known, List<Right> rights, long now, boolean old) {
        for (Right right : rights) {
            Answer answer = known.rights.get(right);
            if (answer == null || !answer.holds(now) || old && now - answer.refreshAt >= 0) {
                return right;
            }
        }
        return null;
    }

    /** Asks the API server until nothing waits. */
    private void run(Token known, String token, List<Right> refreshed) {
        try {
            while (true) {
                decideWaiting(known);
                Identity identity;
                Right right = null;
                synchronized (known) {
                    long now = clock.nanos();
                    identity = known.identity;
                    boolean asked = validIsOld(known, now);
                    if (!asked && identity != null) {
                        ReviewedCaller first = known.waiting.peek();
                        right = first == null ? null : next(known, first.rights(), now, false);
                        right = right == null ? next(known, refreshed, now, true) : right;
                    }
                    if (!asked && right == null) {
                        if (known.waiting.isEmpty()) {
                            known.busy = false;
                            return;
                        }
                        // One came between the decisions and here.
                        continue;
                    }
                }
                if (clock.nanos() - pausedUntil < 0) {
                    fail(known, away());
                    return;
                }
                if (right == null || identity == null) {
                    tokenReviews.increment();
                    Identity now = api.identify(token, audiences);
                    synchronized (known) {
                        if (!Objects.equals(now, known.identity)) {
                            known.rights.clear();
                        }
                        known.identity = now;
                        known.valid = answer(now != null);
                    }
                } else {
                    accessReviews.increment();
                    boolean allowed = api.allows(identity, right);
                    synchronized (known) {
                        if (known.rights.size() >= MOST_RIGHTS) {
                            known.rights.clear();
                        }
                        known.rights.put(right, answer(allowed));
                    }
                }
            }
        } catch (RuntimeException e) {
            failures.increment();
            pausedUntil = clock.nanos() + PAUSE.toNanos();
            log(ServingException.from(e));
            fail(known, away());
        }
    }

    /** Whether the API server is not asked about any token at present. */
    boolean isIdle() {
        for (Token token : tokens.values()) {
            synchronized (token) {
                if (token.busy) {
                    return false;
                }
            }
        }
        return true;
    }

    private void decideWaiting(Token known) {
        Map<ReviewedCaller, Decision> decided = new LinkedHashMap<>();
        synchronized (known) {
            long now = clock.nanos();
            for (Iterator<ReviewedCaller> each = known.waiting.iterator(); each.hasNext(); ) {
                ReviewedCaller caller = each.next();
                Decision decision = decide(known, caller.rights(), now);
                if (decision != null) {
                    each.remove();
                    decided.put(caller, decision);
                }
            }
        }
        decided.forEach(ReviewedCaller::decide);
    }

    private Answer answer(boolean yes) {
        long now = clock.nanos();
        long time = yes ? cacheNanos : refusalNanos;
        return new Answer(yes, now + time, now + (yes ? time / 2 : time));
    }

    private void fail(Token known, ServingException e) {
        List<ReviewedCaller> waiting;
        synchronized (known) {
            waiting = new ArrayList<>(known.waiting);
            known.waiting.clear();
            known.busy = false;
        }
        waiting.forEach(caller -> caller.decide(new Decision(null, e)));
    }

    private void log(ServingException e) {
        long before = loggedAt.get();
        long now = clock.nanos();
        if (now - before >= LOG_PAUSE.toNanos() && loggedAt.compareAndSet(before, now)) {
            LOG.warn("callers cannot be reviewed: {}", e.describe());
        }
    }

    /** Forgets a quarter of the tokens: the ones that are not valid first, then those whose answers end first. */
    private synchronized void shrink() {
        if (tokens.size() < MOST_TOKENS) {
            return;
        }
        record Rank(Key key, boolean yes, long left) {}
        List<Rank> ranks = new ArrayList<>();
        long now = clock.nanos();
        tokens.forEach((key, token) -> {
            synchronized (token) {
                Answer valid = token.valid;
                if (!token.busy) {
                    ranks.add(new Rank(key, valid != null && valid.yes, valid == null ? 0 : valid.until - now));
                }
            }
        });
        ranks.sort(Comparator.comparing(Rank::yes).thenComparingLong(Rank::left));
        ranks.stream().limit(MOST_TOKENS / 4).forEach(rank -> tokens.remove(rank.key()));
    }

    /** The number of tokens that are remembered. */
    int size() {
        return tokens.size();
    }

    @Override
    public void close() {
        pool.shutdownNow();
    }
}
