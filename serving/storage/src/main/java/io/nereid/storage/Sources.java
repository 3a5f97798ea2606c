// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import java.time.Duration;
import java.util.Locale;

/** Makes the source of a URI. Thread-safe: holds what is shared. */
final class Sources {
    private final Http http;
    private final Tokens tokens;

    Sources(Http http, Tokens tokens) {
        this.http = http;
        this.tokens = tokens;
    }

    /** A source with the HTTP it uses and how many parts may run at once. */
    record Opened(Source source, HttpSession session, int wide) {}

    Opened open(String uri, Uris.Kind kind, Settings settings, Cancel cancel) {
        StorageOptions options = http.options;
        int wide = options.connections();
        Tls tls = switch (kind) {
            case S3 -> Tls.ofS3(settings);
            case HDFS -> Tls.ofHdfs(settings);
            default -> Tls.ofCluster(settings);
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
        HttpSession session = new HttpSession(http, tls, settings, patience(kind, settings), cancel);
        Source source = switch (kind) {
            case S3 -> new S3Source(uri, settings, session, tokens);
            case GCS -> new GcsSource(uri, settings, session, tokens, GcsSource.READS);
            case AZURE -> new AzureSource(uri, settings, session, tokens);
            case HDFS -> new HdfsSource(uri, settings, session);
            case HUGGING_FACE -> new HuggingFaceSource(uri, settings, session);
            case OCI -> new OciSource(uri, settings, session, tokens);
            case HTTP -> new WebSource(uri, settings, session);
            case FILE, PVC -> throw new IllegalStateException(kind + " is no remote store");
        };
        return new Opened(source, session, wide);
    }

    /** The options' patience, or what the settings of S3 say. */
    HttpSession.Patience patience(Uris.Kind kind, Settings settings) {
        Duration connect = http.options.connectTimeout();
        Duration read = http.options.readTimeout();
        int attempts = http.options.attempts();
        if (kind == Uris.Kind.S3) {
            attempts = settings.count("S3_MAX_ATTEMPTS", settings.count("AWS_MAX_ATTEMPTS", attempts));
            if (settings.get("S3_READ_TIMEOUT") != null) {
                read = Duration.ofSeconds(settings.count("S3_READ_TIMEOUT", 30));
            }
            if (settings.get("S3_CONNECT_TIMEOUT") != null) {
                connect = Duration.ofSeconds(settings.count("S3_CONNECT_TIMEOUT", 15));
            }
        }
        return new HttpSession.Patience(connect, read, attempts);
    }

    /** A place to write to. Each write is sent once: who writes knows best whether it is worth another time. */
    Target target(String uri, Settings settings, Cancel cancel) {
        Uris.Kind kind = Uris.kind(uri);
        HttpSession.Patience patience = patience(kind, settings);
        Tls tls = kind == Uris.Kind.S3 ? Tls.ofS3(settings) : Tls.ofCluster(settings);
        HttpSession session = new HttpSession(
                http, tls, settings, new HttpSession.Patience(patience.connect(), patience.read(), 1), cancel);
        return switch (kind) {
            case S3 -> new S3Source(uri, settings, session, tokens);
            case GCS -> new GcsSource(uri, settings, session, tokens, GcsSource.WRITES);
            case AZURE -> new AzureSource(uri, settings, session, tokens);
            default -> throw new IllegalStateException(kind + " is not written to");
        };
    }

    /** The digest algorithms that a store names, in lower case. */
    static String lower(String text) {
        return text.toLowerCase(Locale.ROOT);
    }
}
