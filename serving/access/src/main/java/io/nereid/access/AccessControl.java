// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access;

import com.nimbusds.jwt.JWTClaimsSet;
import io.nereid.access.audit.AuditEntry;
import io.nereid.access.audit.AuditLog;
import io.nereid.access.config.AccessConfig;
import io.nereid.access.config.AccessConfigReader;
import io.nereid.access.config.Binding;
import io.nereid.access.config.JwtConfig;
import io.nereid.access.config.Quota;
import io.nereid.access.config.Role;
import io.nereid.access.credential.ApiKey;
import io.nereid.access.credential.ApiKeyFile;
import io.nereid.access.credential.ApiKeys;
import io.nereid.access.credential.BrowserSessions;
import io.nereid.access.credential.JwkSource;
import io.nereid.access.credential.Principal;
import io.nereid.access.credential.SentCredentials;
import io.nereid.access.credential.TokenVerifier;
import io.nereid.access.quota.QuotaTable;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Operation;
import io.nereid.base.access.Permission;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.spi.InferenceEngine;
import io.nereid.transport.api.HttpStatusCodes;
import io.nereid.transport.api.access.AccessPolicy;
import io.nereid.transport.api.access.ClientConnection;
import io.nereid.transport.api.access.LocalAccessPolicy;
import io.nereid.transport.api.access.RequestHead;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The access policy of a server: who makes a request, by API key, token or client certificate, and whether the caller
 * holds the permission that the route needs. Without credentials configured, {@link LocalAccessPolicy} decides.
 * tritonserver's restricted APIs are one more credential.
 *
 * <p>The files of keys and rules are read again when they change; a file that cannot be read leaves the rules from before
 * in force. A decision costs no file access, no lock and, on a connection that sends the same credentials again, no
 * verification. Thread-safe.
 *
 * <pre>{@code
 * AccessControl access = new AccessControl(options);
 * serverOptions.access(access);
 * ProtocolCodec codec = new V2Codec(access.guard(engine), …);
 * }</pre>
 */
public final class AccessControl implements AccessPolicy, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(AccessControl.class);
    private static final long POLL_SECONDS = 2;
    private static final Duration KEYS_MAX_AGE = Duration.ofMinutes(10);
    private static final int MOST_TOKEN_CHARS = 16 << 10;
    private static final long USE_MILLIS = 1_000;

    private final AccessOptions options;
    private final Clock clock;
    private final LocalAccessPolicy localPolicy;
    private final RestrictedApis http;
    private final RestrictedApis grpc;
    private final @Nullable ApiKeys keys;
    private final FailedAttempts failures;
    private final BrowserSessions sessions;
    private final QuotaTable quotas;
    private final @Nullable ScheduledExecutorService timer;
    private final @Nullable AuditLog audit;

    /** The token that the server has made itself, and the caller that sends it. */
    private final byte @Nullable [] ownToken;

    private final Principal owner = new Principal(
            "owner", List.of(Objects.requireNonNull(Role.builtIn().get("admin"))), Quota.NONE, true, Long.MAX_VALUE);

    private volatile Rules rules;
    private @Nullable FileTime keysTime;
    private @Nullable FileTime configTime;
    private long tokenKeysNanos;

    /**
     * Everything that a change of the files replaces, as one. Immutable.
     *
     * @param verifiers by issuer
     */
    private record Rules(
            AccessConfig config, Map<String, TokenVerifier> verifiers, Principal anonymous, Principal local) {}

    /**
     * What a connection has shown, so that the same credentials are not verified again.
     *
     * @param header the header that carried them; empty for a client certificate
     * @param value the header's value as it was sent
     */
    private record Remembered(
            Rules rules,
            String header,
            String value,
            Principal principal,
            @Nullable KeyUse use) {
        /** Whether a request carries the same credentials; a key in {@code authorization} comes first. */
        boolean sentWith(RequestHead head) {
            return header.equals(SentCredentials.AUTHORIZATION)
                    ? head.hasHeader(SentCredentials.AUTHORIZATION, value)
                    : head.header(SentCredentials.AUTHORIZATION) == null
                            && (header.isEmpty()
                                    ? head.header(SentCredentials.KEY_HEADER) == null
                                    : head.hasHeader(SentCredentials.KEY_HEADER, value));
        }
    }

    /** The use of one API key on one connection: noted once in a second. Confined to the connection's event loop. */
    private static final class KeyUse {
        final ApiKey key;
        long notedMillis;

        KeyUse(ApiKey key, long notedMillis) {
            this.key = key;
            this.notedMillis = notedMillis;
        }
    }

    /**
     * Reads the files.
     *
     * @throws ServingException INVALID_ARGUMENT or FAILED_PRECONDITION when a file or an option is wrong
     */
    public AccessControl(AccessOptions options) {
        this.options = options;
        this.clock = options.clock();
        this.localPolicy = new LocalAccessPolicy(options.openManagement(), options.localHosts());
        this.http = new RestrictedApis(options.httpRestrictions(), false);
        this.grpc = new RestrictedApis(options.grpcRestrictions(), true);
        String own = options.token();
        this.ownToken = own == null ? null : own.getBytes(StandardCharsets.UTF_8);
        this.audit = options.auditFile() == null ? null : new AuditLog(options.auditFile());
        this.failures = new FailedAttempts(clock);
        this.sessions = new BrowserSessions(clock);
        Path keysFile = options.keysFile();
        this.keysTime = timeOf(keysFile);
        this.configTime = timeOf(options.configFile());
        this.keys = keysFile == null ? null : new ApiKeys(new ApiKeyFile(keysFile));
        AccessConfig config =
                options.configFile() == null ? AccessConfig.DEFAULT : AccessConfigReader.read(options.configFile());
        this.quotas = new QuotaTable(config, clock);
        this.timer = options.hasCredentials() ? Threads.timer("access") : null;
        this.rules = rules(config, Map.of());
        if (timer != null) {
            refreshTokenKeys();
            var unused = timer.scheduleWithFixedDelay(this::poll, POLL_SECONDS, POLL_SECONDS, TimeUnit.SECONDS);
        }
    }

    private Rules rules(AccessConfig config, Map<String, TokenVerifier> before) {
        Map<String, TokenVerifier> verifiers = new ConcurrentHashMap<>();
        Path base = options.configFile() == null
                ? Path.of("")
                : options.configFile().toAbsolutePath().getParent();
        for (JwtConfig token : config.tokens()) {
            TokenVerifier known = before.get(token.issuer());
            verifiers.put(
                    token.issuer(),
                    known != null && known.config().equals(token)
                            ? known
                            : new TokenVerifier(
                                    token,
                                    new JwkSource(token, base == null ? Path.of("") : base, this::refreshSoon, clock)));
        }
        return new Rules(
                config,
                Map.copyOf(verifiers),
                new Principal("anonymous", rolesOf(config, config.anonymous()), Quota.NONE, false, Long.MAX_VALUE),
                new Principal("local", rolesOf(config, config.local()), Quota.NONE, false, Long.MAX_VALUE));
    }

    private static List<Role> rolesOf(AccessConfig config, Iterable<String> names) {
        List<Role> roles = new ArrayList<>();
        for (String name : names) {
            Role role = config.roles().get(name);
            if (role != null) {
                roles.add(role);
            }
        }
        return roles;
    }

    /** Whether callers are known by credentials. */
    public boolean hasCredentials() {
        return options.hasCredentials();
    }

    /** Whether, with credentials configured, a caller without any holds a permission, for at least one model. */
    public boolean anonymousMay(Permission permission) {
        return options.openManagement() || rules.anonymous.may(permission, null);
    }

    /** The header without which an operation over HTTP is refused; null for none. */
    public @Nullable String restrictedHeader(Operation operation) {
        return http.header(operation);
    }

    // ---- the decision

    @Override
    public Caller admit(RequestHead head, ClientConnection connection, Operation operation, @Nullable String model) {
        try {
            return decide(head, connection, operation, model);
        } catch (ServingException e) {
            AuditLog log = audit;
            if (log != null && e.code() != ErrorCode.INTERNAL) {
                log.record(new AuditEntry(
                        clock.millis(),
                        nameOf(head, connection),
                        operation,
                        model,
                        head.method(),
                        head.path(),
                        String.valueOf(connection.remote()).replaceFirst("^/", ""),
                        head.header("x-request-id"),
                        AuditEntry.Outcome.DENIED,
                        head.grpc() ? e.code().number() : HttpStatusCodes.http(e.code())));
            }
            throw e;
        }
    }

    /** The name of a caller that was refused; that of its credentials if they are valid. */
    private String nameOf(RequestHead head, ClientConnection connection) {
        if (connection.remembered() instanceof Remembered known && known.sentWith(head)) {
            return known.principal.name();
        }
        BrowserSessions.Session session = sessions.find(head.header("cookie"));
        return session == null ? Caller.ANONYMOUS.name() : session.name();
    }

    private Caller decide(RequestHead head, ClientConnection connection, Operation operation, @Nullable String model) {
        if (ownToken != null && hasOwnToken(ownToken, head)) {
            return owner;
        }
        RestrictedApis restricted = grpc.isEmpty() && http.isEmpty() ? http : head.grpc() ? grpc : http;
        if (restricted.restricts(operation)) {
            Caller caller = restricted.caller(operation, head);
            if (caller != null) {
                return caller;
            }
            Caller known = options.hasCredentials() ? authenticate(head, connection) : null;
            if (known instanceof Principal principal
                    && principal.hasCredentials()
                    && principal.may(operation.permission(), model)) {
                return principal;
            }
            throw restricted.denied(operation);
        }
        if (!options.hasCredentials()) {
            return localPolicy.admit(head, connection, operation, model);
        }
        Principal principal = authenticate(head, connection);
        if (principal.may(operation.permission(), model)) {
            return principal;
        }
        if (options.openManagement() && !principal.hasCredentials()) {
            return localPolicy.admit(head, connection, operation, model);
        }
        if (!principal.hasCredentials()) {
            throw ServingException.of(
                    ErrorCode.UNAUTHENTICATED,
                    "'" + operation.permission().configName() + "' needs credentials",
                    "send an API key or a token in the header 'authorization: Bearer …'");
        }
        throw principal.denied(operation.permission(), model);
    }

    private static boolean hasOwnToken(byte[] token, RequestHead head) {
        String given = head.header("authorization");
        return given != null
                && given.regionMatches(true, 0, "Bearer ", 0, 7)
                && MessageDigest.isEqual(given.substring(7).strip().getBytes(StandardCharsets.UTF_8), token);
    }

    private Principal authenticate(RequestHead head, ClientConnection connection) {
        Rules now = rules;
        if (connection.remembered() instanceof Remembered known
                && known.rules == now
                && !known.header.isEmpty()
                && known.sentWith(head)) {
            long millis = clock.millis();
            if (millis < known.principal.expiresMillis()) {
                noteUse(known.use, millis);
                return known.principal;
            }
        }
        String sent = SentCredentials.of(head);
        String credentials = sent == null ? sessions.credentials(head) : sent;
        if (credentials == null) {
            return withoutCredentials(now, head, connection);
        }
        if (credentials.length() > MOST_TOKEN_CHARS) {
            throw unauthenticated("the credentials are longer than " + MOST_TOKEN_CHARS + " characters");
        }
        String value = head.header(SentCredentials.AUTHORIZATION);
        String header = value == null ? SentCredentials.KEY_HEADER : SentCredentials.AUTHORIZATION;
        KeyUse use = null;
        Principal principal;
        if (ApiKeys.isKey(credentials)) {
            ApiKey key = verifyKey(credentials, connection);
            principal = principalOf(now, key);
            use = new KeyUse(key, 0);
            noteUse(use, clock.millis());
        } else {
            principal = verifyToken(now, credentials, connection);
        }
        if (sent != null) {
            connection.remember(new Remembered(now, header, value == null ? sent : value, principal, use));
        }
        return principal;
    }

    private static ServingException unauthenticated(String reason) {
        return ServingException.of(ErrorCode.UNAUTHENTICATED, reason);
    }

    private Principal withoutCredentials(Rules now, RequestHead head, ClientConnection connection) {
        String subject = connection.peer();
        if (subject != null) {
            Set<String> roles = new LinkedHashSet<>();
            Quota quota = Quota.NONE;
            for (Binding binding : now.config.bindings()) {
                if (binding.certificate() != null && binding.certificate().matches(subject)) {
                    roles.addAll(binding.roles());
                    quota = quota.isNone() ? binding.quota() : quota;
                }
            }
            if (!roles.isEmpty()) {
                if (connection.remembered() instanceof Remembered known
                        && known.rules == now
                        && known.header.isEmpty()) {
                    return known.principal;
                }
                Principal principal = new Principal(subject, rolesOf(now.config, roles), quota, true, Long.MAX_VALUE);
                connection.remember(new Remembered(now, "", "", principal, null));
                return principal;
            }
        }
        return !now.config.local().isEmpty() && localPolicy.refusal(head, connection) == null
                ? now.local
                : now.anonymous;
    }

    private ApiKey verifyKey(String credentials, ClientConnection connection) {
        String id = ApiKeys.idOf(credentials);
        ApiKey key = keys == null ? null : keys.verify(credentials, Instant.ofEpochMilli(clock.millis()));
        if (key == null) {
            throw refused(
                    connection,
                    id == null ? "a malformed API key" : "API key with the id " + id,
                    unauthenticated("the API key is not valid"));
        }
        return key;
    }

    private static Principal principalOf(Rules now, ApiKey key) {
        Set<String> roles = new LinkedHashSet<>(key.roles());
        Quota quota = Quota.NONE;
        for (Binding binding : now.config.bindings()) {
            if (binding.key() != null && binding.key().matches(key.name())) {
                roles.addAll(binding.roles());
                quota = quota.isNone() ? binding.quota() : quota;
            }
        }
        Instant expires = key.expires();
        return new Principal(
                key.name(),
                rolesOf(now.config, roles),
                quota,
                true,
                expires == null ? Long.MAX_VALUE : expires.toEpochMilli());
    }

    private Principal verifyToken(Rules now, String credentials, ClientConnection connection) {
        String issuer = TokenVerifier.issuerOf(credentials);
        TokenVerifier verifier = issuer == null ? null : now.verifiers.get(issuer);
        if (verifier == null) {
            throw refused(
                    connection,
                    issuer == null ? "neither an API key nor a token" : "a token of an unknown issuer",
                    unauthenticated("the credentials are neither an API key nor a token of a known issuer"));
        }
        JWTClaimsSet claims;
        try {
            claims = verifier.verify(credentials);
        } catch (ServingException e) {
            throw e.code() == ErrorCode.UNAUTHENTICATED ? refused(connection, e.getMessage(), e) : e;
        }
        JwtConfig config = verifier.config();
        Set<String> roles = new LinkedHashSet<>();
        if (!config.rolesClaim().isEmpty()) {
            roles.addAll(values(claims, config.rolesClaim()));
        }
        Quota quota = Quota.NONE;
        for (Binding binding : now.config.bindings()) {
            String claim = binding.claim();
            if (claim != null
                    && binding.value() != null
                    && values(claims, claim).stream().anyMatch(binding.value()::matches)) {
                roles.addAll(binding.roles());
                quota = quota.isNone() ? binding.quota() : quota;
            }
        }
        List<String> subject = values(claims, config.subjectClaim());
        long expires =
                claims.getExpirationTime().toInstant().plus(config.clockSkew()).toEpochMilli();
        return new Principal(
                subject.isEmpty() ? "token" : subject.get(0), rolesOf(now.config, roles), quota, true, expires);
    }

    /** The values of a claim: of a list all, of a text with spaces (as of {@code scope}) its words. */
    private static List<String> values(JWTClaimsSet claims, String name) {
        Object value = claims.getClaim(name);
        if (value instanceof List<?> list) {
            return list.stream().map(String::valueOf).toList();
        }
        if (value == null) {
            return List.of();
        }
        String text = String.valueOf(value);
        return name.equals("scope") ? List.of(text.split(" ")) : List.of(text);
    }

    /** The error of wrong credentials; another one, which says nothing about them, when an address tries too many. */
    private ServingException refused(ClientConnection connection, String what, ServingException e) {
        long blocked = failures.failed(connection.remote(), what);
        if (blocked == 0) {
            return e;
        }
        Duration wait = Duration.ofNanos(blocked);
        return ServingException.retryable(
                ErrorCode.RESOURCE_EXHAUSTED,
                "too many wrong credentials from this address",
                "try again in " + Math.max(1, wait.plusMillis(999).toSeconds()) + " s",
                wait);
    }

    private void noteUse(@Nullable KeyUse use, long millis) {
        if (use != null && keys != null && millis >= use.notedMillis + USE_MILLIS) {
            use.notedMillis = millis;
            keys.used(use.key, Instant.ofEpochMilli(millis));
        }
    }

    // ---- the files

    private static @Nullable FileTime timeOf(@Nullable Path file) {
        try {
            return file == null ? null : Files.getLastModifiedTime(file);
        } catch (IOException e) {
            return null;
        }
    }

    private void refreshSoon() {
        if (timer != null) {
            timer.execute(this::refreshTokenKeys);
        }
    }

    private void refreshTokenKeys() {
        tokenKeysNanos = clock.nanos();
        rules.verifiers.values().forEach(v -> v.keys().refresh());
    }

    private void poll() {
        try {
            if (keys != null) {
                keys.writeUse();
            }
            FileTime keysNow = timeOf(options.keysFile());
            FileTime configNow = timeOf(options.configFile());
            if (!Objects.equals(keysNow, keysTime) || !Objects.equals(configNow, configTime)) {
                keysTime = keysNow;
                configTime = configNow;
                reload();
            }
            if (clock.nanos() - tokenKeysNanos > KEYS_MAX_AGE.toNanos()) {
                refreshTokenKeys();
            }
        } catch (RuntimeException e) {
            LOG.error("the access rules could not be refreshed; those from before stay in force", e);
        }
    }

    /** Reads the files again; when one is wrong, its rules from before stay in force and the log says so. */
    public void reload() {
        Rules before = rules;
        if (keys != null) {
            try {
                keys.reload();
            } catch (ServingException e) {
                LOG.error("{}; the API keys from before stay in force", e.describe());
            }
        }
        AccessConfig config = before.config;
        if (options.configFile() != null) {
            try {
                config = AccessConfigReader.read(options.configFile());
            } catch (ServingException e) {
                LOG.error("{}; the rules from before stay in force", e.describe());
            }
        }
        Rules next = rules(config, before.verifiers);
        quotas.configure(config);
        rules = next; // also ends what connections remember of keys that may have changed
        if (!next.verifiers.equals(before.verifiers)) {
            refreshTokenKeys();
        }
        LOG.info(
                "access rules read: {} API keys, {} roles, {} bindings, {} token issuers",
                keys == null ? 0 : keys.size(),
                config.roles().size(),
                config.bindings().size(),
                config.tokens().size());
    }

    // ---- parts for other components

    /** The sessions of browsers; null where callers are not known by credentials. */
    public @Nullable BrowserSessions sessions() {
        return options.hasCredentials() ? sessions : null;
    }

    /** The audit log; null when there is none. */
    public @Nullable AuditLog audit() {
        return audit;
    }

    /**
     * An engine that lets callers run what they may, within their quotas; the engine itself where callers are not known
     * by credentials.
     */
    public InferenceEngine guard(InferenceEngine engine) {
        return options.hasCredentials() ? quotas.guard(engine) : engine;
    }

    /** Writes the metrics of keys and quotas. */
    public void writeMetrics(MetricsWriter page) {
        if (options.hasCredentials()) {
            quotas.writeMetrics(page);
        }
    }

    /** Whether guarded operations are open to local callers without credentials, as far as the options go. */
    public boolean trustsLocalCallers() {
        return !options.hasCredentials() || !rules.config.local().isEmpty();
    }

    @Override
    public void close() {
        if (timer != null) {
            timer.shutdownNow();
        }
        if (keys != null) {
            keys.writeUse();
        }
        if (audit != null) {
            audit.close();
        }
    }
}
