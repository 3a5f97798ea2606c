// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.plugins;

import io.nereid.backend.Backend;
import io.nereid.backend.CacheStoreProvider;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.device.DeviceDriverProvider;
import io.nereid.storage.spi.StorageProvider;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The backends, storage providers, response caches and drivers of devices on the class path and in plugins. A plugin that is broken, or has a
 * name in common with another provider, is reported in the log and skipped as a whole. Immutable.
 */
public final class InstalledPlugins {
    private static final Logger LOG = LoggerFactory.getLogger(InstalledPlugins.class);

    private final List<Backend> backends;
    private final List<StorageProvider> storageProviders;
    private final List<CacheStoreProvider> cacheProviders;
    private final List<DeviceDriverProvider> deviceProviders;

    private InstalledPlugins(
            List<Backend> backends,
            List<StorageProvider> storageProviders,
            List<CacheStoreProvider> cacheProviders,
            List<DeviceDriverProvider> deviceProviders) {
        this.backends = List.copyOf(backends);
        this.storageProviders = List.copyOf(storageProviders);
        this.cacheProviders = List.copyOf(cacheProviders);
        this.deviceProviders = List.copyOf(deviceProviders);
    }

    /**
     * Loads the plugins of this user and of the distribution.
     *
     * @throws ServingException FAILED_PRECONDITION when two providers on the class path have one name
     */
    public static InstalledPlugins load() {
        return load(PluginDirectories.ofUser());
    }

    static InstalledPlugins load(PluginDirectories places) {
        PluginLoader.offerLibraries(places);
        List<Backend> backends = new ArrayList<>();
        List<StorageProvider> storage = new ArrayList<>();
        List<CacheStoreProvider> caches = new ArrayList<>();
        // In plugins only: a server without one does not look for them.
        List<DeviceDriverProvider> devices = new ArrayList<>();
        String remedy = "remove one of them from the class path";
        ServiceLoader.load(Backend.class).forEach(backends::add);
        ServiceLoader.load(StorageProvider.class).forEach(storage::add);
        ServiceLoader.load(CacheStoreProvider.class).forEach(caches::add);
        requireDistinct(backends, storage, caches, remedy);
        Map<String, String> broken = new HashMap<>();
        places.installed().forEach((name, directory) -> {
            try {
                LoadedPlugin plugin = PluginLoader.load(places, name, directory);
                add(plugin, backends, storage, caches);
                devices.addAll(plugin.of(PluginKind.DEVICE, DeviceDriverProvider.class));
            } catch (IOException | ServingException | LinkageError | ServiceConfigurationError e) {
                String why = reason(e);
                broken.put(name, why);
                LOG.error("plugin '{}' in {} is broken and skipped: {}", name, directory, why);
            }
        });
        addMissing(backends, broken);
        backends.sort(Comparator.comparing(Backend::name));
        return new InstalledPlugins(backends, storage, caches, devices);
    }

    /**
     * Loads the storage providers alone, without the libraries of backends. Of a broken plugin nothing is loaded.
     *
     * @throws ServingException FAILED_PRECONDITION when two providers are for one scheme
     */
    public static List<StorageProvider> loadStorageProviders() {
        List<StorageProvider> storage = new ArrayList<>();
        ServiceLoader.load(StorageProvider.class).forEach(storage::add);
        PluginDirectories places = PluginDirectories.ofUser();
        places.installed().forEach((name, directory) -> {
            try {
                storage.addAll(PluginLoader.load(places, name, directory, List.of(PluginKind.STORAGE))
                        .of(PluginKind.STORAGE, StorageProvider.class));
            } catch (IOException | ServingException | LinkageError | ServiceConfigurationError e) {
                LOG.error("plugin '{}' in {} is broken and skipped: {}", name, directory, reason(e));
            }
        });
        requireDistinct(List.of(), storage, List.of(), "remove one of the plugins with nereid plugins remove");
        return storage;
    }

    private static void add(
            LoadedPlugin plugin,
            List<Backend> backends,
            List<StorageProvider> storage,
            List<CacheStoreProvider> caches) {
        List<Backend> allBackends = new ArrayList<>(backends);
        List<StorageProvider> allStorage = new ArrayList<>(storage);
        List<CacheStoreProvider> allCaches = new ArrayList<>(caches);
        allBackends.addAll(plugin.of(PluginKind.BACKEND, Backend.class));
        allStorage.addAll(plugin.of(PluginKind.STORAGE, StorageProvider.class));
        allCaches.addAll(plugin.of(PluginKind.CACHE, CacheStoreProvider.class));
        requireDistinct(
                allBackends, allStorage, allCaches, "remove the plugin: nereid plugins remove " + plugin.name());
        backends.addAll(allBackends.subList(backends.size(), allBackends.size()));
        storage.addAll(allStorage.subList(storage.size(), allStorage.size()));
        caches.addAll(allCaches.subList(caches.size(), allCaches.size()));
    }

    private static void requireDistinct(
            List<Backend> backends, List<StorageProvider> storage, List<CacheStoreProvider> caches, String remedy) {
        Map<String, Object> known = new HashMap<>();
        backends.forEach(b -> claim(known, "backends are called '" + b.name() + "'", b, remedy));
        storage.forEach(s ->
                s.schemes().forEach(scheme -> claim(known, "storage providers are for " + scheme + "://", s, remedy)));
        caches.forEach(c -> claim(known, "response caches are called '" + c.name() + "'", c, remedy));
    }

    private static void claim(Map<String, Object> known, String what, Object provider, String remedy) {
        Object other = known.putIfAbsent(what, provider);
        if (other != null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "two " + what + ": " + other.getClass().getName() + " and "
                            + provider.getClass().getName(),
                    remedy);
        }
    }

    private static void addMissing(List<Backend> found, Map<String, String> broken) {
        Set<String> names = new HashSet<>();
        found.forEach(b -> names.add(b.name()));
        for (PluginManifest plugin : PluginManifest.all()) {
            for (PluginManifest.KnownBackend backend : plugin.backends()) {
                if (names.add(backend.name())) {
                    found.add(new MissingPluginBackend(plugin.name(), backend, broken.get(plugin.name())));
                }
            }
        }
    }

    /** Why a plugin cannot be loaded. */
    static String reason(Throwable e) {
        if (e instanceof ServingException s) {
            return s.describe();
        }
        String message = e.getMessage();
        Throwable cause = e.getCause();
        return (message == null ? e.getClass().getSimpleName() : message)
                + (cause == null || cause == e ? "" : " (" + reason(cause) + ")");
    }

    /** All backends by name; those of known plugins that are not installed fail to load with the remedy. */
    public List<Backend> backends() {
        return backends;
    }

    /** The storage providers that replace or complete the built-in ones. */
    public List<StorageProvider> storageProviders() {
        return storageProviders;
    }

    /** The providers of external response caches. */
    public List<CacheStoreProvider> cacheProviders() {
        return cacheProviders;
    }

    /** The drivers of devices. */
    public List<DeviceDriverProvider> deviceProviders() {
        return deviceProviders;
    }
}
