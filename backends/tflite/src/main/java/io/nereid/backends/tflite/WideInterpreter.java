// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backend.WideRuns;

/**
 * The interpreter with several threads that the instances of a model share for runs on an idle machine. It has one run at a time;
 * a run that finds it in use is narrow. Thread-safe.
 */
final class WideInterpreter implements WideRuns.RunVariant {
    private final LiteModelInstance instance;

    /** 1 for the one that opened it, and 1 for a run. */
    @GuardedBy("this") private int holds = 1;

    WideInterpreter(LiteModelInstance instance) {
        this.instance = instance;
    }

    /** The instance whose interpreter it is; for the run that holds it. */
    LiteModelInstance instance() {
        return instance;
    }

    @Override
    public synchronized boolean hold() {
        if (holds > 1) {
            return false;
        }
        holds++;
        return true;
    }

    @Override
    public void drop() {
        boolean last;
        synchronized (this) {
            last = --holds == 0;
        }
        if (last) {
            instance.close();
        }
    }
}
