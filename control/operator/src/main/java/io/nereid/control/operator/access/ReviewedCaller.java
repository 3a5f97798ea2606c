// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.access;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Permission;
import io.nereid.control.gateway.access.PendingCaller;
import io.nereid.control.operator.access.AccessApi.Right;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The caller of one request, decided once by what the API server says. One that was admitted may do what changes nothing,
 * and the rest if it was asked for the right to do so. Thread-safe.
 */
final class ReviewedCaller implements PendingCaller {
    private static final Logger LOG = LoggerFactory.getLogger(ReviewedCaller.class);

    private final List<Right> rights;
    private final boolean changes;

    /**
     * A decision.
     *
     * @param user whose token it is; null when it is not known
     * @param refusal null when the request may pass
     */
    record Decision(@Nullable String user, @Nullable ServingException refusal) {}

    private volatile @Nullable Decision decision;

    @GuardedBy("this") private final List<Consumer<@Nullable ServingException>> actions = new ArrayList<>(1);

    /**
     * Creates a caller about whom nothing is known.
     *
     * @param rights what it needs
     * @param changes whether they are those to change something
     */
    ReviewedCaller(List<Right> rights, boolean changes) {
        this.rights = List.copyOf(rights);
        this.changes = changes;
    }

    /** The rights that it needs. */
    List<Right> rights() {
        return rights;
    }

    /** The decision; null as long as there is none. */
    @Nullable Decision decision() {
        return decision;
    }

    /** Sets the decision. Only the first one counts. */
    void decide(Decision made) {
        List<Consumer<@Nullable ServingException>> waiting;
        synchronized (this) {
            if (decision != null) {
                return;
            }
            decision = made;
            waiting = List.copyOf(actions);
            actions.clear();
        }
        for (Consumer<@Nullable ServingException> action : waiting) {
            run(action, made.refusal());
        }
    }

    private static void run(Consumer<@Nullable ServingException> action, @Nullable ServingException refusal) {
        try {
            action.accept(refusal);
        } catch (RuntimeException e) {
            // The other requests that wait for the same answer must go on.
            LOG.error("a request whose caller was reviewed could not go on", e);
        }
    }

    @Override
    public void whenDecided(Consumer<@Nullable ServingException> action) {
        Decision now;
        synchronized (this) {
            now = decision;
            if (now == null) {
                actions.add(action);
            }
        }
        if (now != null) {
            run(action, now.refusal());
        }
    }

    @Override
    public boolean isAdmitted() {
        Decision now = decision;
        return now != null && now.refusal() == null;
    }

    @Override
    public String name() {
        Decision now = decision;
        return now == null || now.user() == null ? Caller.ANONYMOUS.name() : now.user();
    }

    @Override
    public boolean may(Permission permission, @Nullable String model) {
        return isAdmitted() && (changes || !permission.guarded());
    }
}
