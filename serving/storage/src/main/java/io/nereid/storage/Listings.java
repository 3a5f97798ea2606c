// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** What all listings have in common. Stateless. */
final class Listings {
    private Listings() {}

    /**
     * The path of a key below a prefix, or null if it is not below it: {@code model} is no prefix of {@code model2/x}.
     */
    static @Nullable String below(String key, String prefix) {
        if (prefix.isEmpty()) {
            return key;
        }
        String directory = prefix.endsWith("/") ? prefix : prefix + "/";
        return key.startsWith(directory) ? key.substring(directory.length()) : null;
    }

    /** The wanted items with safe paths; drops markers of directories, refuses what cannot be in one directory. */
    static Source.Listing settle(Source.Listing listing, Patterns patterns, String uri, int most) {
        if (listing.shape() == Source.Shape.LAYERS) {
            return listing;
        }
        boolean archive = listing.shape() == Source.Shape.FILES
                && listing.items().size() == 1
                && Paths.archive(listing.items().get(0).path());
        TreeMap<String, Item> items = new TreeMap<>();
        for (Item item : listing.items()) {
            String path = Paths.safe(item.path(), Uris.shown(uri));
            boolean marker = path.isEmpty() || item.path().endsWith("/");
            if (marker || !archive && !patterns.wants(path)) {
                continue;
            }
            Item settled = new Item(
                    path, item.size(), item.version(), item.tag(), item.checksum(), item.ranges(), item.fetch());
            if (items.put(path, settled) != null) {
                throw ServingException.invalidArgument(
                        Uris.shown(uri) + " holds two objects that would both be the file '" + path + "'");
            }
        }
        Set<String> directories = new HashSet<>();
        for (String path : items.keySet()) {
            for (int slash = path.indexOf('/'); slash > 0; slash = path.indexOf('/', slash + 1)) {
                directories.add(path.substring(0, slash));
            }
        }
        for (String directory : directories) {
            Item item = items.get(directory);
            if (item != null && item.size() != 0) {
                throw ServingException.invalidArgument(
                        Uris.shown(uri) + " holds '" + directory + "' both as an object and as a directory of others");
            }
            items.remove(directory);
        }
        if (items.isEmpty()) {
            throw empty(uri);
        }
        if (items.size() > most) {
            throw ServingException.invalidArgument(
                    Uris.shown(uri) + " holds " + items.size() + " objects; at most " + most + " are brought",
                    "name a smaller part of the store");
        }
        List<Item> settled = new ArrayList<>(items.values());
        return new Source.Listing(listing.place(), settled, listing.shape());
    }

    static ServingException empty(String uri) {
        return ServingException.of(
                ErrorCode.NOT_FOUND,
                "Failed to fetch model. No model found in " + Uris.shown(uri) + ".",
                "check the path, and the patterns of what to bring");
    }
}
