// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.provider;

import io.nereid.storage.http.HttpClients;
import io.nereid.storage.http.HttpSession;
import io.nereid.storage.http.TlsSettings;
import io.nereid.storage.request.StorageUris;
import io.nereid.storage.spi.IdentitySettings;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.RetryPolicy;
import io.nereid.storage.spi.StorageContext;
import io.nereid.storage.spi.StorageProvider;
import io.nereid.storage.spi.StorageSettings;
import io.nereid.storage.spi.UploadTarget;
import java.time.Duration;
import java.util.Locale;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** A kind of store that this module reads with its own HTTP client. Thread-safe: clients and tokens are shared. */
final class BuiltInProvider implements StorageProvider {
    /** Creates the source of a URI. */
    @FunctionalInterface
    interface SourceFactory {
        ObjectSource create(String uri, StorageSettings settings, HttpSession session);
    }

    /** Creates the upload target of a URI. */
    @FunctionalInterface
    interface TargetFactory {
        UploadTarget create(String uri, StorageSettings settings, HttpSession session);
    }

    private final HttpClients http;
    private final StorageUris.Kind kind;
    private final Set<String> schemes;
    private final IdentitySettings identity;
    private final SourceFactory sources;
    private final @Nullable TargetFactory targets;

    /** @param targets null for a kind of store that is not written to */
    BuiltInProvider(
            HttpClients http,
            StorageUris.Kind kind,
            Set<String> schemes,
            IdentitySettings identity,
            SourceFactory sources,
            @Nullable TargetFactory targets) {
        this.http = http;
        this.kind = kind;
        this.schemes = schemes;
        this.identity = identity;
        this.sources = sources;
        this.targets = targets;
    }

    @Override
    public String name() {
        return kind.name().toLowerCase(Locale.ROOT);
    }

    @Override
    public Set<String> schemes() {
        return schemes;
    }

    @Override
    public boolean accepts(String uri) {
        return StorageUris.kind(uri) == kind;
    }

    @Override
    public IdentitySettings identitySettings() {
        return identity;
    }

    @Override
    public RetryPolicy retries(StorageSettings settings, RetryPolicy server) {
        if (kind != StorageUris.Kind.S3) {
            return server;
        }
        Duration connect = server.connect();
        Duration read = server.read();
        int attempts = settings.count("S3_MAX_ATTEMPTS", settings.count("AWS_MAX_ATTEMPTS", server.attempts()));
        if (settings.get("S3_READ_TIMEOUT") != null) {
            read = Duration.ofSeconds(settings.count("S3_READ_TIMEOUT", 30));
        }
        if (settings.get("S3_CONNECT_TIMEOUT") != null) {
            connect = Duration.ofSeconds(settings.count("S3_CONNECT_TIMEOUT", 15));
        }
        return new RetryPolicy(connect, read, attempts);
    }

    @Override
    public ObjectSource open(StorageContext context) {
        return sources.create(context.uri(), context.settings(), session(context, context.retries()));
    }

    /** Each write is sent once; the caller decides about retries. */
    @Override
    public UploadTarget upload(StorageContext context) {
        if (targets == null) {
            return StorageProvider.super.upload(context);
        }
        RetryPolicy once =
                new RetryPolicy(context.retries().connect(), context.retries().read(), 1);
        return targets.create(context.uri(), context.settings(), session(context, once));
    }

    private HttpSession session(StorageContext context, RetryPolicy retries) {
        StorageSettings settings = context.settings();
        TlsSettings tls = switch (kind) {
            case S3 -> TlsSettings.ofS3(settings);
            case HDFS -> TlsSettings.ofHdfs(settings);
            default -> TlsSettings.ofCluster(settings);
        };
        return new HttpSession(
                http,
                tls,
                settings,
                retries,
                context.cancel(),
                http.options.access().connections(context.uri()));
    }
}
