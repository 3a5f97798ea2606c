// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.provider;

import io.nereid.storage.credentials.TokenCache;
import io.nereid.storage.http.HttpClients;
import io.nereid.storage.http.HttpSession;
import io.nereid.storage.http.TlsSettings;
import io.nereid.storage.object.ObjectSource;
import io.nereid.storage.object.UploadTarget;
import io.nereid.storage.request.CancellationToken;
import io.nereid.storage.request.StorageOptions;
import io.nereid.storage.request.StorageSettings;
import io.nereid.storage.request.StorageUris;
import java.time.Duration;
import java.util.Locale;

/** Creates the source or the upload target of a URI. Thread-safe: clients and tokens are shared. */
public final class SourceFactory {
    private final HttpClients http;
    private final TokenCache tokens;

    public SourceFactory(HttpClients http, TokenCache tokens) {
        this.http = http;
        this.tokens = tokens;
    }

    /** A source, its HTTP session, and the maximum number of parts that may run at once. */
    public record Opened(ObjectSource source, HttpSession session, int wide) {}

    public Opened open(String uri, StorageUris.Kind kind, StorageSettings settings, CancellationToken cancel) {
        StorageOptions options = http.options;
        int wide = options.connections();
        TlsSettings tls = switch (kind) {
            case S3 -> TlsSettings.ofS3(settings);
            case HDFS -> TlsSettings.ofHdfs(settings);
            default -> TlsSettings.ofCluster(settings);
        };
        switch (kind) {
            case S3 -> {
                wide = Math.min(wide, settings.count("S3_MAX_FILE_CONCURRENCY", wide));
            }
            case AZURE -> {
                int files = settings.count("AZURE_MAX_FILE_CONCURRENCY", wide);
                int chunks = settings.count("AZURE_MAX_CHUNK_CONCURRENCY", wide);
                wide = (int) Math.min(wide, (long) files * chunks);
            }
            case HDFS -> wide = Math.min(wide, settings.count("N_THREADS", wide));
            default -> {}
        }
        HttpSession session = new HttpSession(http, tls, settings, retryPolicy(kind, settings), cancel);
        ObjectSource source = switch (kind) {
            case S3 -> new S3Source(uri, settings, session, tokens);
            case GCS -> new GcsSource(uri, settings, session, tokens, GcsSource.READS);
            case AZURE -> new AzureBlobSource(uri, settings, session, tokens);
            case HDFS -> new WebHdfsSource(uri, settings, session);
            case HUGGING_FACE -> new HuggingFaceSource(uri, settings, session);
            case OCI -> new OciSource(uri, settings, session, tokens);
            case HTTP -> new HttpSource(uri, settings, session);
            case FILE, PVC -> throw new IllegalStateException(kind + " is not a remote store");
        };
        return new Opened(source, session, wide);
    }

    /** Timeouts and attempts of the options; the settings of S3 override them. */
    public HttpSession.RetryPolicy retryPolicy(StorageUris.Kind kind, StorageSettings settings) {
        Duration connect = http.options.connectTimeout();
        Duration read = http.options.readTimeout();
        int attempts = http.options.attempts();
        if (kind == StorageUris.Kind.S3) {
            attempts = settings.count("S3_MAX_ATTEMPTS", settings.count("AWS_MAX_ATTEMPTS", attempts));
            if (settings.get("S3_READ_TIMEOUT") != null) {
                read = Duration.ofSeconds(settings.count("S3_READ_TIMEOUT", 30));
            }
            if (settings.get("S3_CONNECT_TIMEOUT") != null) {
                connect = Duration.ofSeconds(settings.count("S3_CONNECT_TIMEOUT", 15));
            }
        }
        return new HttpSession.RetryPolicy(connect, read, attempts);
    }

    /** Creates an upload target. Each write is sent once; the caller decides about retries. */
    public UploadTarget target(String uri, StorageSettings settings, CancellationToken cancel) {
        StorageUris.Kind kind = StorageUris.kind(uri);
        HttpSession.RetryPolicy retryPolicy = retryPolicy(kind, settings);
        TlsSettings tls = kind == StorageUris.Kind.S3 ? TlsSettings.ofS3(settings) : TlsSettings.ofCluster(settings);
        HttpSession session = new HttpSession(
                http, tls, settings, new HttpSession.RetryPolicy(retryPolicy.connect(), retryPolicy.read(), 1), cancel);
        return switch (kind) {
            case S3 -> new S3Source(uri, settings, session, tokens);
            case GCS -> new GcsSource(uri, settings, session, tokens, GcsSource.WRITES);
            case AZURE -> new AzureBlobSource(uri, settings, session, tokens);
            default -> throw new IllegalStateException(kind + " is not written to");
        };
    }

    /** A text in lower case, independent of the locale. */
    static String lower(String text) {
        return text.toLowerCase(Locale.ROOT);
    }
}
