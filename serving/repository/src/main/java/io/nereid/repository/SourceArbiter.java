// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.spi.Source;
import io.nereid.spi.Source.Aspired;
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
 * Lets several sources feed one target without fighting over models. The source that named a model first owns it until
 * it gives the model an empty list; what others want of it is kept back, logged once, and listed. When the owner lets a
 * model go, the source that has waited longest for it becomes its owner, and its latest list is handed over.
 *
 * <pre>{@code
 * SourceArbiter gate = new SourceArbiter(manager::aspire);
 * listSource.start(gate.as("the list of models"));     // the earlier start wins where both know a model
 * repositorySource.start(gate.as("the repository"));
 * otherSource.start(gate.as("other"));
 *
 * gate.owner("half");                                  // "the list of models"
 * gate.conflicts();                                    // [Conflict[model=half, owner=the list of models, other=other]]
 * }</pre>
 *
 * <p>Whoever loads or unloads a model of one source by request asks for its {@link #owner} first, for the request would
 * change nothing when that is another source.
 *
 * <p>Thread-safe: one lock, held while the target is told, so that it hears of a model in the order of decisions.
 */
public final class SourceArbiter {
    private static final Logger LOG = LoggerFactory.getLogger(SourceArbiter.class);

    private final Target target;
    private final ReentrantLock lock = new ReentrantLock();
    private final Map<String, Claims> models = new TreeMap<>();

    /** A gate in front of a target. */
    public SourceArbiter(Target target) {
        this.target = target;
    }

    /**
     * A model that two sources want.
     *
     * @param model its name
     * @param owner the source whose list counts
     * @param other the source whose list is kept back
     */
    public record Conflict(String model, String owner, String other) {
        @Override
        public String toString() {
            return "model '" + model + "' of " + other + " is not served, for " + owner
                    + " named a model of that name first";
        }
    }

    /**
     * Who wants a model. Guarded by the lock.
     *
     * @param wanting lists by source, the owner's among them
     */
    private record Claims(String owner, Map<String, List<Aspired>> wanting) {}

    /**
     * The target for one source.
     *
     * @param name what the source is called in messages, such as {@code the repository}; one name for each source
     */
    public Target as(String name) {
        return (model, versions) -> aspire(name, model, versions);
    }

    /** Starts a source with {@link #as} its target. */
    public void start(String name, Source source) {
        source.start(as(name));
    }

    /** The name of the source that owns a model; null when no source wants it. */
    public @Nullable String owner(String model) {
        lock.lock();
        try {
            Claims claims = models.get(model);
            return claims == null ? null : claims.owner;
        } finally {
            lock.unlock();
        }
    }

    /** Every list that is kept back, by model. */
    public List<Conflict> conflicts() {
        lock.lock();
        try {
            List<Conflict> conflicts = new ArrayList<>();
            models.forEach((model, claims) -> claims.wanting.keySet().stream()
                    .filter(s -> !s.equals(claims.owner))
                    .forEach(s -> conflicts.add(new Conflict(model, claims.owner, s))));
            return List.copyOf(conflicts);
        } finally {
            lock.unlock();
        }
    }

    private void aspire(String source, String model, List<Aspired> versions) {
        lock.lock();
        try {
            Claims claims = models.get(model);
            if (claims == null) {
                if (!versions.isEmpty()) {
                    models.put(model, claimed(source, versions));
                }
                target.aspire(model, versions);
            } else if (!claims.owner.equals(source)) {
                keepBack(source, model, versions, claims);
            } else if (versions.isEmpty()) {
                release(model, claims);
            } else {
                claims.wanting.put(source, versions);
                target.aspire(model, versions);
            }
        } finally {
            lock.unlock();
        }
    }

    private static Claims claimed(String owner, List<Aspired> versions) {
        Map<String, List<Aspired>> wanting = new LinkedHashMap<>();
        wanting.put(owner, versions);
        return new Claims(owner, wanting);
    }

    private static void keepBack(String source, String model, List<Aspired> versions, Claims claims) {
        if (versions.isEmpty()) {
            claims.wanting.remove(source);
        } else if (claims.wanting.put(source, versions) == null) {
            LOG.warn("{}", new Conflict(model, claims.owner, source));
        }
    }

    private void release(String model, Claims claims) {
        claims.wanting.remove(claims.owner);
        Map.Entry<String, List<Aspired>> next =
                claims.wanting.entrySet().stream().findFirst().orElse(null);
        if (next == null) {
            models.remove(model);
            target.aspire(model, List.of());
        } else {
            models.put(model, new Claims(next.getKey(), claims.wanting));
            LOG.info("model '{}' is served from {} now, for {} let it go", model, next.getKey(), claims.owner);
            target.aspire(model, next.getValue());
        }
    }
}
