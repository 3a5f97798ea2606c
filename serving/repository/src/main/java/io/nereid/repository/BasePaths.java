// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.base.Clock;
import io.nereid.repository.layout.StoredModel;
import io.nereid.repository.layout.StoredModel.ModelEntry;
import io.nereid.repository.polling.ModelScanner.Found;
import io.nereid.spi.management.ModelListEntry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The base paths of a model list, and which of them may have changed. A quick scan reads only the modification time of
 * each base path, which changes when a version directory is added or removed. It does not change with files inside of a
 * version, so every model is also read in full once in 256 scans. Guarded by the source's lock.
 */
final class BasePaths {
    /** Number of scans within which every model is read in full at least once. */
    static final int ROUND = 256;

    /**
     * Resolution of modification times, at worst. A younger time may stand for two changes, of which only one was seen,
     * so it is not remembered and the next scan reads the model again.
     */
    private static final long TICK_MILLIS = 2_000;

    private static final String CONFIG = "config.pbtxt";
    private static final Scan NOTHING = new Scan(Long.MIN_VALUE, null, 0);

    private final Clock clock;
    private final Map<String, Item> items = new TreeMap<>();
    private List<Item> order = List.of();
    private Found found = new Found(Map.of(), Set.of(), Set.of());
    private int turn;
    private long scans;

    BasePaths(Clock clock) {
        this.clock = clock;
    }

    /** A model of the list. */
    private static final class Item {
        final ModelListEntry served;
        final ModelEntry entry;
        boolean configured;

        /** Result of the latest scan; null if the next one must read the model in full. */
        @Nullable Scan seen;

        Item(ModelListEntry served) {
            this.served = served;
            this.entry = ModelEntry.of(served);
        }
    }

    /**
     * The result of a quick scan of a model.
     *
     * @param modified modification time of its base path, in nanoseconds
     * @param key the file key (inode) of its base path, which changes if the directory is replaced; null if unsupported
     * @param configModified modification time of its configuration; 0 without one
     */
    private record Scan(long modified, @Nullable Object key, long configModified) {}

    /** Replaces the list; unchanged models keep their scan results. */
    void replace(List<ModelListEntry> models) {
        Map<String, Item> before = new TreeMap<>(items);
        items.clear();
        for (ModelListEntry m : models) {
            Item item = before.get(m.name());
            items.put(m.name(), item != null && item.served.equals(m) ? item : new Item(m));
        }
        order = List.copyOf(items.values());
        found = found(order);
        turn = 0;
    }

    /** The entries of a list that is not in force. */
    static Found foundOf(List<ModelListEntry> models) {
        return found(models.stream().map(Item::new).toList());
    }

    private static Found found(List<Item> items) {
        Map<String, List<ModelEntry>> entries = new TreeMap<>();
        items.forEach(i -> entries.put(i.entry.name(), List.of(i.entry)));
        return new Found(entries, Set.of(), Set.of());
    }

    Found found() {
        return found;
    }

    int size() {
        return order.size();
    }

    long scans() {
        return scans;
    }

    /** Number of models that each scan reads in full in turn. */
    int turns() {
        return (order.size() + ROUND - 1) / ROUND;
    }

    /** Scans all base paths; returns the models that may have changed and those to be read in turn. */
    List<String> changed() {
        Set<String> due = new HashSet<>();
        for (int i = turns(); i > 0; i--) {
            due.add(order.get(turn).entry.name());
            turn = (turn + 1) % order.size();
        }
        List<String> changed = new ArrayList<>();
        for (Item item : order) {
            if (note(item) || due.contains(item.entry.name())) {
                changed.add(item.entry.name());
            }
        }
        return changed;
    }

    /** Call before models are read in full, so that the next scan detects a change during the read. */
    void noteAll(Iterable<String> names) {
        for (String name : names) {
            Item item = items.get(name);
            if (item != null) {
                note(item);
            }
        }
    }

    /** Call after a model was read in full. */
    void read(StoredModel model) {
        Item item = items.get(model.entry().name());
        if (item == null) {
            return;
        }
        boolean configured = Files.exists(item.entry.directory().resolve(CONFIG));
        if (configured != item.configured) {
            item.configured = configured;
            item.seen = null;
        }
    }

    /** Scans a model; returns whether it differs from the last scan. */
    private boolean note(Item item) {
        Scan scan = scan(item);
        boolean same = scan.equals(item.seen);
        item.seen = young(scan.modified) || young(scan.configModified) ? null : scan;
        return !same;
    }

    private boolean young(long nanos) {
        return Math.abs(clock.millis() - TimeUnit.NANOSECONDS.toMillis(nanos)) < TICK_MILLIS;
    }

    private Scan scan(Item item) {
        BasicFileAttributes base = attributes(item.entry.directory());
        if (base == null) {
            return NOTHING;
        }
        BasicFileAttributes config =
                item.configured ? attributes(item.entry.directory().resolve(CONFIG)) : null;
        return new Scan(nanos(base), base.fileKey(), config == null ? 0 : nanos(config));
    }

    private static long nanos(BasicFileAttributes attributes) {
        return attributes.lastModifiedTime().to(TimeUnit.NANOSECONDS);
    }

    private @Nullable BasicFileAttributes attributes(Path path) {
        scans++;
        try {
            return Files.readAttributes(path, BasicFileAttributes.class);
        } catch (IOException e) {
            return null;
        }
    }
}
