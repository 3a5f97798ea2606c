// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.object;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.spi.ObjectEntry;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.StorageUri;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Functions that all sources share for their listings. Stateless. */
public final class ListingUtil {
    private ListingUtil() {}

    /**
     * Returns the path of a key below a prefix, or null: {@code model2/x} is not below {@code model}.
     */
    public static @Nullable String below(String key, String prefix) {
        if (prefix.isEmpty()) {
            return key;
        }
        String directory = prefix.endsWith("/") ? prefix : prefix + "/";
        return key.startsWith(directory) ? key.substring(directory.length()) : null;
    }

    /**
     * Selects the objects that match the patterns and makes their paths safe. Drops directory markers. Rejects
     * duplicate paths, and a path that is both an object and a directory, since a file system cannot hold them.
     */
    public static ObjectSource.Listing settle(ObjectSource.Listing listing, GlobFilter patterns, String uri, int most) {
        if (listing.shape() == ObjectSource.Shape.LAYERS) {
            return listing;
        }
        boolean archive = listing.shape() == ObjectSource.Shape.FILES
                && listing.items().size() == 1
                && ObjectPaths.archive(listing.items().get(0).path());
        TreeMap<String, ObjectEntry> items = new TreeMap<>();
        for (ObjectEntry item : listing.items()) {
            String path = ObjectPaths.safe(item.path(), StorageUri.shown(uri));
            boolean marker = path.isEmpty() || item.path().endsWith("/");
            if (marker || !archive && !patterns.wants(path)) {
                continue;
            }
            if (items.put(path, item.withPath(path)) != null) {
                throw ServingException.invalidArgument(
                        StorageUri.shown(uri) + " holds two objects that would both be the file '" + path + "'");
            }
        }
        Set<String> directories = new HashSet<>();
        for (String path : items.keySet()) {
            for (int slash = path.indexOf('/'); slash > 0; slash = path.indexOf('/', slash + 1)) {
                directories.add(path.substring(0, slash));
            }
        }
        for (String directory : directories) {
            ObjectEntry item = items.get(directory);
            if (item != null && item.size() != 0) {
                throw ServingException.invalidArgument(StorageUri.shown(uri) + " holds '" + directory
                        + "' both as an object and as a directory of others");
            }
            items.remove(directory);
        }
        if (items.isEmpty()) {
            throw empty(uri);
        }
        if (listing.shape() == ObjectSource.Shape.FILES
                && items.size() == 1
                && ObjectPaths.unsupportedArchive(items.firstKey())) {
            throw ServingException.invalidArgument(
                    StorageUri.shown(uri) + " is the archive '" + items.firstKey() + "', whose compression is not"
                            + " supported (expected: .zip, .tar, .tar.gz or .tgz)",
                    "pack it with gzip");
        }
        if (items.size() > most) {
            throw ServingException.invalidArgument(
                    StorageUri.shown(uri) + " holds " + items.size() + " objects; at most " + most + " are downloaded",
                    "name a smaller part of the store");
        }
        List<ObjectEntry> settled = new ArrayList<>(items.values());
        return new ObjectSource.Listing(listing.place(), settled, listing.shape());
    }

    public static ServingException empty(String uri) {
        return ServingException.of(
                ErrorCode.NOT_FOUND,
                "Failed to fetch model. No model found in " + StorageUri.shown(uri) + ".",
                "check the path, and the allow and ignore patterns");
    }
}
