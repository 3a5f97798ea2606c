// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.base.Clock;
import io.nereid.repository.layout.StoredModel;
import io.nereid.repository.layout.StoredModel.ModelEntry;
import io.nereid.repository.polling.ModelScanner.Found;
import io.nereid.spi.ModelControl.ServedModel;
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
 * The base paths of a list, and which of them may have changed. A directory's time of change tells whether anything was
 * put into it or removed, which is the one question that has to be asked of each model again and again. What it does not
 * tell, changes of files inside of a version, shows when the model has its turn to be read in full. Guarded by the
 * source's lock.
 */
final class BasePaths {
    /** Looks after which every model has been read in full at least once. */
    static final int ROUND = 256;

    /** A time that is younger may stand for two changes, of which only one was seen. */
    private static final long TICK_MILLIS = 2_000;

    private static final String CONFIG = "config.pbtxt";
    private static final Glance NOTHING = new Glance(Long.MIN_VALUE, null, 0);

    private final Clock clock;
    private final Map<String, Item> items = new TreeMap<>();
    private List<Item> order = List.of();
    private Found found = new Found(Map.of(), Set.of(), Set.of());
    private int turn;
    private long glances;

    BasePaths(Clock clock) {
        this.clock = clock;
    }

    /** A model of the list. */
    private static final class Item {
        final ServedModel served;
        final ModelEntry entry;
        boolean configured;

        /** What the latest look saw; null where the next one is to read the model in full. */
        @Nullable
        Glance seen;

        Item(ServedModel served) {
            this.served = served;
            this.entry = ModelEntry.of(served);
        }
    }

    /**
     * What is cheap to know of a model.
     *
     * @param modified when its base path was changed, in nanoseconds
     * @param key tells its base path from another one that takes its place; null where there is no such thing
     * @param configModified when its configuration was changed, likewise; 0 where there is none
     */
    private record Glance(long modified, @Nullable Object key, long configModified) {}

    /** Replaces the list; what is known of models of which it says the same stays known. */
    void replace(List<ServedModel> models) {
        Map<String, Item> before = new TreeMap<>(items);
        items.clear();
        for (ServedModel m : models) {
            Item item = before.get(m.name());
            items.put(m.name(), item != null && item.served.equals(m) ? item : new Item(m));
        }
        order = List.copyOf(items.values());
        found = found(order);
        turn = 0;
    }

    /** The entries of a list that is not in force. */
    static Found foundOf(List<ServedModel> models) {
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

    long glances() {
        return glances;
    }

    /** Models that are read in full at every look, whatever their times of change. */
    int turns() {
        return (order.size() + ROUND - 1) / ROUND;
    }

    /** Models that may have changed, and those whose turn it is. */
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

    /** To be called before models are read in full, so that a change during the reading is seen afterwards. */
    void noteAll(Iterable<String> names) {
        for (String name : names) {
            Item item = items.get(name);
            if (item != null) {
                note(item);
            }
        }
    }

    /** To be called when a model has been read in full. */
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

    /** Looks at a model's times of change; whether they differ from those seen before. */
    private boolean note(Item item) {
        Glance glance = glance(item);
        boolean same = glance.equals(item.seen);
        item.seen = young(glance.modified) || young(glance.configModified) ? null : glance;
        return !same;
    }

    private boolean young(long nanos) {
        return Math.abs(clock.millis() - TimeUnit.NANOSECONDS.toMillis(nanos)) < TICK_MILLIS;
    }

    private Glance glance(Item item) {
        BasicFileAttributes base = attributes(item.entry.directory());
        if (base == null) {
            return NOTHING;
        }
        BasicFileAttributes config =
                item.configured ? attributes(item.entry.directory().resolve(CONFIG)) : null;
        return new Glance(nanos(base), base.fileKey(), config == null ? 0 : nanos(config));
    }

    private static long nanos(BasicFileAttributes attributes) {
        return attributes.lastModifiedTime().to(TimeUnit.NANOSECONDS);
    }

    private @Nullable BasicFileAttributes attributes(Path path) {
        glances++;
        try {
            return Files.readAttributes(path, BasicFileAttributes.class);
        } catch (IOException e) {
            return null;
        }
    }
}
