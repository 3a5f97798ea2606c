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

/** A loader that fails or blocks as configured, and records calls in the wrong order. Thread-safe. */
public final class FakeLoader implements Loader {
    public final AtomicInteger loads = new AtomicInteger();
    public final AtomicInteger estimates = new AtomicInteger();
    public final AtomicInteger unloads = new AtomicInteger();
    public final CountDownLatch loading = new CountDownLatch(1);
    public final CountDownLatch unloaded = new CountDownLatch(1);
    public volatile @Nullable FakeServable servable;
    volatile @Nullable String unloadThread;
    public volatile int failLoads;
    volatile int failEstimates;

    /** The exception of a failing load or estimate; null for an unexpected one. */
    public volatile @Nullable RuntimeException failure;

    volatile boolean failWarm;
    volatile boolean failUnload;
    public volatile long estimate;
    volatile long memory = -1;
    public volatile @Nullable CountDownLatch gate;

    /** Blocks the unload. */
    public volatile @Nullable CountDownLatch unloadGate;

    final CountDownLatch unloading = new CountDownLatch(1);
    private final ServableId id;
    private volatile String fingerprint;

    /** Models it depends on. */
    volatile List<String> dependencies = List.of();

    /** Run before it loads; may throw. */
    volatile Runnable check = () -> {};

    /** Called with the created servable. */
    public volatile Consumer<FakeServable> made = s -> {};

    /** Creates the loader for a reload. */
    volatile @Nullable Supplier<FakeLoader> again;

    volatile boolean adopts;
    final AtomicInteger adoptions = new AtomicInteger();

    public FakeLoader(String model, long version, String fingerprint) {
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
        RuntimeException configured = failure;
        return configured == null ? new IllegalStateException(text) : configured;
    }

    @Override
    public List<String> dependencies() {
        return dependencies;
    }

    @Override
    public boolean updateInPlace(Loader next) {
        if (adopts) {
            fingerprint = next.fingerprint();
            adoptions.incrementAndGet();
        }
        return adopts;
    }

    @Override
    public Loader newLoader() {
        Supplier<FakeLoader> supplier = again;
        return supplier == null ? Loader.super.newLoader() : supplier.get();
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
