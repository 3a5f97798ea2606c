// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.backend.Backend;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelControl.ModelChange;
import io.nereid.spi.ModelControl.ServedModel;
import io.nereid.spi.Source;
import java.time.Duration;
import java.util.List;

/** Models of a list. Thread-safe: one lock guards reading and emitting. */
public final class ServedModelSource implements Source {
    /**
     * Settings. Immutable.
     *
     * @param pollInterval time between two looks at the base paths; zero looks once, at the start
     * @param settle how long files must have been unchanged to count as completely written; zero takes them as they are
     * @param confirmations looks in a row that must find nothing before a model that serves is unloaded; at least 1
     * @param alwaysPresent whether a model that serves is never unloaded because nothing of it is found, and one of
     *     which nothing is found is refused
     * @param failIfZeroVersionsAtStartup whether {@link #start} fails when a model has no versions
     */
    public record Options(
            Duration pollInterval,
            Duration settle,
            int confirmations,
            boolean alwaysPresent,
            boolean failIfZeroVersionsAtStartup) {
        /** A look every second, half-copied versions not being loaded. */
        public static final Options DEFAULT = new Options(Duration.ofSeconds(1), Duration.ofSeconds(1), 3, false, false);

        /** Refuses what cannot be, with INVALID_ARGUMENT. */
        public Options {
            if (pollInterval.isNegative() || settle.isNegative() || confirmations < 1) {
                throw ServingException.invalidArgument(
                        "poll interval " + pollInterval + ", settle time " + settle + ", " + confirmations
                                + " confirmations (expected: no negative times, at least 1 confirmation)");
            }
        }

        /** These settings with another poll interval. */
        public Options withPollInterval(Duration newPollInterval) {
            return new Options(newPollInterval, settle, confirmations, alwaysPresent, failIfZeroVersionsAtStartup);
        }

        /** These settings with another settle time. */
        public Options withSettle(Duration newSettle) {
            return new Options(pollInterval, newSettle, confirmations, alwaysPresent, failIfZeroVersionsAtStartup);
        }

        /** These settings with another number of confirmations. */
        public Options withConfirmations(int newConfirmations) {
            return new Options(pollInterval, settle, newConfirmations, alwaysPresent, failIfZeroVersionsAtStartup);
        }

        /** These settings, unloading for lack of files or not. */
        public Options withAlwaysPresent(boolean newAlwaysPresent) {
            return new Options(pollInterval, settle, confirmations, newAlwaysPresent, failIfZeroVersionsAtStartup);
        }

        /** These settings, starting without versions or not. */
        public Options withFailIfZeroVersionsAtStartup(boolean fail) {
            return new Options(pollInterval, settle, confirmations, alwaysPresent, fail);
        }
    }

    /**
     * What looking has cost so far. Immutable.
     *
     * @param looks looks at the whole list
     * @param glances times that a base path's time of change was asked for
     * @param reads models that were read in full
     * @param interval time between two looks, as it is now
     */
    public record Polling(long looks, long glances, long reads, Duration interval) {}

    private List<ServedModel> models;

    /**
     * Reads nothing yet.
     *
     * @param models the list
     * @param backends what can run models; earlier ones win where several recognise the same files
     * @param loaders makes the loader of every version emitted
     * @param options settings
     * @param clock tells how long files have been as they are
     * @throws ServingException INVALID_ARGUMENT for a list that cannot be
     */
    public ServedModelSource(
            List<ServedModel> models, List<Backend> backends, LoaderFactory loaders, Options options, Clock clock) {
        ServedModelList.check(models, List.of(), backends);
        this.models = List.copyOf(models);
    }

    @Override
    public void start(Target target) {
        throw new UnsupportedOperationException();
    }

    /** The list in force. */
    public synchronized List<ServedModel> models() {
        return models;
    }

    /** What {@link #configure} would do now; does nothing. Throws what it would throw. */
    public List<ModelChange> plan(List<ServedModel> next) {
        throw new UnsupportedOperationException();
    }

    /**
     * Replaces the list. Checked whole before anything changes. Models that are not in it any more are emitted without
     * versions; new and changed ones are read now. Files that are still being written are taken up when they have
     * settled, like those of a look. A changed model of which nothing can be served goes on with what it serves, and the
     * change says why.
     *
     * @return a change for every model of the new list in its order, then for those removed
     * @throws ServingException INVALID_ARGUMENT for a list that cannot be, nothing having changed; FAILED_PRECONDITION
     *     before {@link #start} and after {@link #close}
     */
    public synchronized List<ModelChange> configure(List<ServedModel> next) {
        models = List.copyOf(next);
        throw new UnsupportedOperationException();
    }

    /** Looks at all models now, as the timer does. */
    public void poll() {}

    /** What the latest reads found wrong, in the order of the models' names. */
    public List<Problem> problems() {
        return List.of();
    }

    /** What looking has cost so far. */
    public Polling polling() {
        return new Polling(0, 0, 0, Duration.ZERO);
    }

    @Override
    public void close() {}
}
