// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.credential;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.transport.api.access.RequestHead;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Base64;
import java.util.Comparator;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * The sessions of browsers that have signed in to the web console. A session stands for the credentials that were sent to
 * open it: a request with its cookie is decided as if it had sent them, so that a key that is revoked ends its sessions
 * too. Sessions are in memory only, and end with the server.
 *
 * <p>A browser adds the cookie to requests that other pages cause. The cookie is therefore {@code SameSite=Strict}, and a
 * request that changes something must repeat the session's CSRF token, which only a page of this server can read, in the
 * header {@value #CSRF_HEADER}.
 *
 * <p>Thread-safe.
 *
 * <pre>{@code
 * BrowserSessions.Session session = sessions.open("nrd_…", "alice");
 * reply.header("set-cookie", BrowserSessions.COOKIE + "=" + session.id() + "; HttpOnly; SameSite=Strict; Path=/");
 * }</pre>
 */
public final class BrowserSessions {
    /** The name of the cookie. */
    public static final String COOKIE = "nereid-session";

    /** The header with the session's CSRF token, in lower case. */
    public static final String CSRF_HEADER = "x-csrf-token";

    /** How long a session lives without a request, and at most. */
    public static final Duration IDLE = Duration.ofMinutes(30);

    public static final Duration LIFETIME = Duration.ofHours(12);

    private static final int MOST = 1_000;
    private static final int RANDOM_BYTES = 32;

    private final Map<String, Session> byId = new ConcurrentHashMap<>();
    private final SecureRandom random = new SecureRandom();
    private final Clock clock;

    /** A session. Thread-safe. */
    public static final class Session {
        private final String id;
        private final String csrfToken;
        private final String credentials;
        private final String name;
        private final long openedMillis;
        private volatile long usedMillis;

        private Session(String id, String csrfToken, String credentials, String name, long now) {
            this.id = id;
            this.csrfToken = csrfToken;
            this.credentials = credentials;
            this.name = name;
            this.openedMillis = now;
            this.usedMillis = now;
        }

        /** The value of the cookie: a secret of 256 bits. */
        public String id() {
            return id;
        }

        /** The value of the header {@value BrowserSessions#CSRF_HEADER} of requests that change something. */
        public String csrfToken() {
            return csrfToken;
        }

        /** The name of the caller who opened it. */
        public String name() {
            return name;
        }

        private boolean ended(long now) {
            return now - usedMillis > IDLE.toMillis() || now - openedMillis > LIFETIME.toMillis();
        }
    }

    /** @param clock the time, for the end of sessions */
    public BrowserSessions(Clock clock) {
        this.clock = clock;
    }

    /**
     * Opens a session. Of more than 1,000, the one that was used least recently ends.
     *
     * @param credentials the API key or token, which has been verified
     * @param name the caller's name
     */
    public Session open(String credentials, String name) {
        long now = clock.millis();
        byId.values().removeIf(s -> s.ended(now));
        while (byId.size() >= MOST) {
            byId.values().stream()
                    .min(Comparator.comparingLong(s -> s.usedMillis))
                    .ifPresent(oldest -> byId.remove(oldest.id));
        }
        Session session = new Session(secret(), secret(), credentials, name, now);
        byId.put(session.id, session);
        return session;
    }

    private String secret() {
        byte[] bytes = new byte[RANDOM_BYTES];
        random.nextBytes(bytes);
        return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
    }

    /**
     * Finds the session of a request.
     *
     * @param cookies the value of its header {@code cookie}; null without one
     * @return null when the request has no cookie of a session that is open
     */
    public @Nullable Session find(@Nullable String cookies) {
        if (cookies == null || byId.isEmpty()) {
            return null;
        }
        for (String pair : cookies.split(";", -1)) {
            String cookie = pair.strip();
            if (cookie.startsWith(COOKIE + "=")) {
                Session session = byId.get(cookie.substring(COOKIE.length() + 1));
                long now = clock.millis();
                if (session != null && !session.ended(now)) {
                    session.usedMillis = now;
                    return session;
                }
            }
        }
        return null;
    }

    /**
     * The credentials of a request's session.
     *
     * @return null when the request has none
     * @throws ServingException PERMISSION_DENIED when the request changes something and does not repeat the CSRF token
     */
    public @Nullable String credentials(RequestHead head) {
        Session session = find(head.header("cookie"));
        if (session == null) {
            return null;
        }
        boolean reads = head.method().equals("GET") || head.method().equals("HEAD");
        if (!reads && !matches(session.csrfToken, head.header(CSRF_HEADER))) {
            throw ServingException.of(
                    ErrorCode.PERMISSION_DENIED,
                    "the request has the cookie of a session and not its CSRF token",
                    "send the token that signing in returned in the header '" + CSRF_HEADER + "', or an API key in"
                            + " 'authorization' and not the cookie");
        }
        return session.credentials;
    }

    private static boolean matches(String expected, @Nullable String given) {
        return given != null
                && MessageDigest.isEqual(
                        expected.getBytes(StandardCharsets.UTF_8), given.getBytes(StandardCharsets.UTF_8));
    }

    /** Ends a session. */
    public void close(Session session) {
        byId.remove(session.id);
    }
}
