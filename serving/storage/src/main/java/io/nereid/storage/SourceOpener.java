// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import io.nereid.storage.object.ContentDigests;
import io.nereid.storage.object.GlobFilter;
import io.nereid.storage.object.ListingUtil;
import io.nereid.storage.provider.StorageProviders;
import io.nereid.storage.request.StorageJson;
import io.nereid.storage.request.StorageOptions;
import io.nereid.storage.request.StorageRequest;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.ObjectEntry;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.StorageContext;
import io.nereid.storage.spi.StorageProvider;
import io.nereid.storage.spi.StorageSettings;
import java.util.ArrayList;
import java.util.List;

/** Opens the sources of URIs and identifies their content. Immutable. */
final class SourceOpener {
    private final StorageProviders providers;
    private final StorageOptions options;

    SourceOpener(StorageProviders providers, StorageOptions options) {
        this.providers = providers;
        this.options = options;
    }

    /**
     * An open source, which its owner closes. Immutable.
     *
     * @param context what it was opened with
     * @param listing of the objects that the patterns select
     * @param reads how many ranges of it may be read at once
     */
    record Opened(ObjectSource source, StorageContext context, ObjectSource.Listing listing, int reads)
            implements AutoCloseable {
        @Override
        public void close() {
            source.close();
        }
    }

    /** Opens the source of a URI and lists it; blocks. */
    Opened open(String uri, GlobFilter patterns, StorageSettings settings, CancellationToken cancel) {
        StorageProvider provider = providers.of(uri);
        StorageContext context = providers.context(provider, uri, settings, cancel);
        ObjectSource source = provider.open(context);
        boolean listed = false;
        try {
            int reads = Math.min(options.connections(), source.maxReads());
            ObjectSource.Listing listing = ListingUtil.settle(
                    source.list(), patterns, uri, options.limits().entries());
            listed = true;
            return new Opened(source, context, listing, reads);
        } finally {
            if (!listed) {
                source.close();
            }
        }
    }

    /** The patterns of a request, else those of the settings. */
    static GlobFilter patterns(StorageRequest request, StorageSettings settings) {
        List<String> allow =
                request.allow().isEmpty() ? StorageJson.list(settings, "STORAGE_ALLOW_PATTERNS") : request.allow();
        List<String> ignore =
                request.ignore().isEmpty() ? StorageJson.list(settings, "STORAGE_IGNORE_PATTERNS") : request.ignore();
        return new GlobFilter(allow, ignore);
    }

    /** Identifies the content of a listing: the place, the patterns, and size, version and path of each object. */
    static String key(ObjectSource.Listing listing, GlobFilter patterns, StorageSettings settings) {
        StringBuilder all =
                new StringBuilder(listing.place()).append('\n').append(patterns).append('\n');
        for (ObjectEntry item : listing.items()) {
            all.append(item.size())
                    .append('\0')
                    .append(item.version())
                    .append('\0')
                    .append(item.path())
                    .append('\n');
        }
        if (!listing.versioned()) {
            // Without versions, equal listings do not prove equal content: other credentials may see other objects.
            all.append(settings.identity());
        }
        return ContentDigests.sha256(all.toString());
    }

    /** The listing for a store that ignores requests for ranges. */
    static ObjectSource.Listing withoutRanges(ObjectSource.Listing listing) {
        List<ObjectEntry> whole = new ArrayList<>();
        listing.items().forEach(item -> whole.add(item.withoutRanges()));
        return new ObjectSource.Listing(listing.place(), whole, listing.shape());
    }
}
