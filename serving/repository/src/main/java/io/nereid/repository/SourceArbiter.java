// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.Source;
import io.nereid.spi.Source.Target;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Merges several sources into one target, so that each model has one owner. The first source that emits a model owns it
 * until it emits an empty list for it. The lists of other sources are withheld, logged once, and reported as conflicts.
 * When the owner releases a model, the source that has waited longest becomes its owner, and its latest list is
 * emitted.
 *
 * <pre>{@code
 * SourceArbiter gate = new SourceArbiter(manager::aspire);
 * listSource.start(gate.as("the list of models"));     // the earlier start wins if both have a model
 * repositorySource.start(gate.as("the repository"));
 * otherSource.start(gate.as("other"));
 *
 * gate.owner("half");                                  // "the list of models"
 * gate.conflicts();                                    // [Conflict[model=half, owner=the list of models, other=other]]
 * }</pre>
 *
 * <p>A caller that loads or unloads a model of one source checks {@link #owner} first: the request has no effect if
 * another source owns the model.
 *
 * <p>Thread-safe: one lock, held while the target is called, so that the target receives the lists of a model in order.
 */
public final class SourceArbiter {
    private static final Logger LOG = LoggerFactory.getLogger(SourceArbiter.class);

    @GuardedBy("lock") private final Target target;

    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock") private final Map<String, Claims> models = new TreeMap<>();

    /** Creates an arbiter for a target. */
    public SourceArbiter(Target target) {
        this.target = target;
    }

    /**
     * A model that two sources emit.
     *
     * @param model its name
     * @param owner the source whose list is in force
     * @param other the source whose list is withheld
     */
    public record Conflict(String model, String owner, String other) {
        @Override
        public String toString() {
            return "model '" + model + "' of " + other + " is not served, because " + owner
                    + " named a model of that name first";
        }
    }

    /**
     * The sources of a model. Guarded by the lock.
     *
     * @param lists lists by source, including the owner's, in order of arrival
     */
    private record Claims(String owner, Map<String, List<AspiredVersion>> lists) {}

    /**
     * Returns the target for one source.
     *
     * @param name the source's unique name in messages, such as {@code the repository}
     */
    public Target as(String name) {
        return (model, versions) -> aspire(name, model, versions);
    }

    /** Starts a source with {@link #as} its target. */
    public void start(String name, Source source) {
        source.start(as(name));
    }

    /** The name of the source that owns a model; null if no source emits it. */
    public @Nullable String owner(String model) {
        lock.lock();
        try {
            Claims claims = models.get(model);
            return claims == null ? null : claims.owner;
        } finally {
            lock.unlock();
        }
    }

    /** All withheld lists, by model. */
    public List<Conflict> conflicts() {
        lock.lock();
        try {
            List<Conflict> conflicts = new ArrayList<>();
            models.forEach((model, claims) -> claims.lists.keySet().stream()
                    .filter(s -> !s.equals(claims.owner))
                    .forEach(s -> conflicts.add(new Conflict(model, claims.owner, s))));
            return List.copyOf(conflicts);
        } finally {
            lock.unlock();
        }
    }

    private void aspire(String source, String model, List<AspiredVersion> versions) {
        lock.lock();
        try {
            Claims claims = models.get(model);
            if (claims == null) {
                if (!versions.isEmpty()) {
                    models.put(model, claimed(source, versions));
                }
                target.aspire(model, versions);
            } else if (!claims.owner.equals(source)) {
                withhold(source, model, versions, claims);
            } else if (versions.isEmpty()) {
                release(model, claims);
            } else {
                claims.lists.put(source, versions);
                target.aspire(model, versions);
            }
        } finally {
            lock.unlock();
        }
    }

    private static Claims claimed(String owner, List<AspiredVersion> versions) {
        Map<String, List<AspiredVersion>> lists = new LinkedHashMap<>();
        lists.put(owner, versions);
        return new Claims(owner, lists);
    }

    private static void withhold(String source, String model, List<AspiredVersion> versions, Claims claims) {
        if (versions.isEmpty()) {
            claims.lists.remove(source);
        } else if (claims.lists.put(source, versions) == null) {
            LOG.warn("{}", new Conflict(model, claims.owner, source));
        }
    }

    @GuardedBy("lock") private void release(String model, Claims claims) {
        claims.lists.remove(claims.owner);
        Map.Entry<String, List<AspiredVersion>> next =
                claims.lists.entrySet().stream().findFirst().orElse(null);
        if (next == null) {
            models.remove(model);
            target.aspire(model, List.of());
        } else {
            models.put(model, new Claims(next.getKey(), claims.lists));
            LOG.info("model '{}' is served from {} now, because {} released it", model, next.getKey(), claims.owner);
            target.aspire(model, next.getValue());
        }
    }
}
