// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.spi.Loader;
import io.nereid.spi.Servable;
import io.nereid.spi.ServableId;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A loader that fails or waits as told, and notes calls in the wrong order. Thread-safe. */
final class FakeLoader implements Loader {
    final AtomicInteger loads = new AtomicInteger();
    final AtomicInteger estimates = new AtomicInteger();
    final AtomicInteger unloads = new AtomicInteger();
    final CountDownLatch loading = new CountDownLatch(1);
    final CountDownLatch unloaded = new CountDownLatch(1);
    volatile @Nullable FakeServable servable;
    volatile @Nullable String unloadThread;
    volatile int failLoads;
    volatile int failEstimates;

    /** What a failing load or estimate throws; null for something unforeseen. */
    volatile @Nullable RuntimeException failure;

    volatile boolean failWarm;
    volatile boolean failUnload;
    volatile long estimate;
    volatile long memory = -1;
    volatile @Nullable CountDownLatch gate;

    /** Where unloading waits. */
    volatile @Nullable CountDownLatch unloadGate;

    final CountDownLatch unloading = new CountDownLatch(1);
    private final ServableId id;
    private volatile String fingerprint;

    /** Models it depends on. */
    volatile List<String> dependencies = List.of();

    /** Run before it loads; may throw. */
    volatile Runnable check = () -> {};

    /** Told of what it made. */
    volatile Consumer<FakeServable> made = s -> {};

    /** Where it is asked for another of its kind. */
    volatile @Nullable Supplier<FakeLoader> again;

    volatile boolean adopts;
    final AtomicInteger adoptions = new AtomicInteger();

    FakeLoader(String model, long version, String fingerprint) {
        this.id = new ServableId(model, version);
        this.fingerprint = fingerprint;
    }

    @Override
    public ServableId id() {
        return id;
    }

    @Override
    public String fingerprint() {
        return fingerprint;
    }

    @Override
    public String backend() {
        return "fake";
    }

    @Override
    public long estimateBytes() {
        if (estimates.incrementAndGet() <= failEstimates) {
            throw failed("estimate " + estimates.get() + " is broken");
        }
        return estimate;
    }

    private RuntimeException failed(String text) {
        RuntimeException told = failure;
        return told == null ? new IllegalStateException(text) : told;
    }

    @Override
    public List<String> dependencies() {
        return dependencies;
    }

    @Override
    public boolean adopt(Loader next) {
        if (adopts) {
            fingerprint = next.fingerprint();
            adoptions.incrementAndGet();
        }
        return adopts;
    }

    @Override
    public Loader again() {
        Supplier<FakeLoader> supplier = again;
        return supplier == null ? Loader.super.again() : supplier.get();
    }

    @Override
    public Servable load() {
        int n = loads.incrementAndGet();
        loading.countDown();
        check.run();
        pass(gate);
        if (n <= failLoads) {
            throw failed("load " + n + " is broken");
        }
        FakeServable s = new FakeServable(id, fingerprint, memory);
        made.accept(s);
        servable = s;
        return s;
    }

    private static void pass(@Nullable CountDownLatch gate) {
        try {
            if (gate != null && !gate.await(20, TimeUnit.SECONDS)) {
                throw new IllegalStateException("the test forgot to open the gate");
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException("interrupted", e);
        }
    }

    @Override
    public void warm() {
        if (failWarm) {
            throw new IllegalStateException("warm-up is broken");
        }
    }

    @Override
    public void unload() {
        unloads.incrementAndGet();
        unloading.countDown();
        pass(unloadGate);
        unloadThread = Thread.currentThread().getName();
        FakeServable s = servable;
        if (s != null) {
            s.unloaded = true;
        }
        unloaded.countDown();
        if (failUnload) {
            throw new IllegalStateException("unload is broken");
        }
    }
}
