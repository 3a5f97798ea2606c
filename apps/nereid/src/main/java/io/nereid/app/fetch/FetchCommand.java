// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.fetch;

import io.nereid.app.plugins.InstalledPlugins;
import io.nereid.app.process.Logging;
import io.nereid.app.process.TerminationLog;
import io.nereid.app.text.DownloadProgress;
import io.nereid.app.text.Terminal;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.storage.DirectoryFetcher;
import io.nereid.storage.request.StorageAccess;
import io.nereid.storage.request.StorageOptions;
import io.nereid.storage.request.StorageRequest;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.StorageProvider;
import io.nereid.storage.spi.StorageUri;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid fetch}: fetches models into directories. Exit codes: 0 success, 1 failure, 2 invalid command line. */
@Command(
        name = "fetch",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Fetch models into directories, as the storage initializer of a pod.",
            "",
            "The files of a source lie in its directory under their own names. A single archive (.zip, .tar, .tar.gz,"
                    + " .tgz) is unpacked; files of this machine are linked. A fetch that was interrupted continues"
                    + " where it ended, and nothing is fetched that is there already. Files that an earlier fetch put"
                    + " into the directory and that no source has any more are removed.",
            "",
            "Credentials are read from the environment, under the names that KServe uses for its storage initializer:"
                    + " AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, GOOGLE_APPLICATION_CREDENTIALS, AZURE_CLIENT_ID, HF_TOKEN,"
                    + " HOST-headers, STORAGE_CONFIG and others; docs/KUBERNETES.md lists all."
        },
        footer = {
            "",
            "Examples:",
            "  nereid fetch s3://models/iris /mnt/models",
            "  nereid fetch hf://org/base /mnt/models s3://adapters/a /mnt/models/adapters/a",
            "  nereid fetch https://example.com/model.tar.gz ./model"
        })
@SuppressWarnings("NullAway.Init") // set by picocli
public final class FetchCommand implements Callable<Integer> {
    private static final long STOP_SECONDS = 20;

    @Parameters(
            paramLabel = "SRC DEST",
            arity = "0..*",
            description = "Sources, each with the directory that it is fetched into, in this order. A source is s3://,"
                    + " gs://, hf://, oci://, hdfs://, webhdfs://, http://, https:// (of Azure's"
                    + " storage too),"
                    + " file:// or an absolute path.")
    List<String> arguments = new ArrayList<>();

    @Option(
            names = "--storage-uris",
            paramLabel = "JSON|FILE",
            description =
                    "Sources as the storageUris of an InferenceService: [{\"uri\": ..., \"mountPath\": ...}], or a"
                            + " file with this JSON. They are fetched after the arguments.")
    @Nullable String storageUris;

    @Option(
            names = "--storage-allow",
            paramLabel = "PATTERN",
            split = ",",
            description = "Which sources are permitted, and which hosts are reached for them:"
                    + " scheme://host[:port][/prefix], or * for all; may be repeated. Without it, all sources are"
                    + " permitted. Link-local and metadata addresses are refused unless a pattern names their host; in a"
                    + " pod, its own addresses too.")
    List<String> storageAllow = new ArrayList<>();

    @Option(
            names = "--pvc-root",
            paramLabel = "DIR",
            description =
                    "Directory with a subdirectory for each claim of pvc://CLAIM/PATH. Without it, pvc:// is refused;"
                            + " name the path at which a claim is mounted instead.")
    @Nullable Path pvcRoot;

    @Option(
            names = "--termination-log",
            paramLabel = "FILE",
            description = "Where the reason of a failure is written, for the status of the pod (default:"
                    + " /dev/termination-log, if it exists).")
    @Nullable Path terminationLog;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        Logging.configure(Logging.Format.TEXT, Level.WARNING);
        return run(System.getenv(), true);
    }

    /**
     * Fetches with an environment.
     *
     * @param hook whether a signal that ends the process ends the fetch first
     */
    int run(Map<String, String> environment, boolean hook) {
        List<FetchPair> pairs = new ArrayList<>();
        try {
            pairs.addAll(FetchPair.ofArguments(arguments));
            if (storageUris != null) {
                pairs.addAll(FetchPair.ofStorageUris(storageUris));
            }
            StorageAccess.of(storageAllow, false, Map.of());
        } catch (ServingException e) {
            throw new ParameterException(spec.commandLine(), e.describe(), e);
        }
        if (pairs.isEmpty()) {
            throw new ParameterException(
                    spec.commandLine(), "no source is given; expected: nereid fetch SRC DEST [SRC DEST ...]");
        }
        CancellationToken cancel = new CancellationToken();
        CountDownLatch ended = new CountDownLatch(1);
        Thread stop = Threads.named("shutdown").newThread(() -> stop(cancel, ended));
        if (hook) {
            Runtime.getRuntime().addShutdownHook(stop);
        }
        try {
            fetchAll(pairs, FetchEnvironment.of(environment), cancel);
            return 0;
        } catch (ServingException e) {
            fail(e, cancel);
            return 1;
        } catch (RuntimeException | Error e) {
            e.printStackTrace(spec.commandLine().getErr());
            fail(ServingException.from(e), cancel);
            return 1;
        } finally {
            ended.countDown();
        }
    }

    private static void stop(CancellationToken cancel, CountDownLatch ended) {
        cancel.cancel();
        try {
            if (!ended.await(STOP_SECONDS, TimeUnit.SECONDS)) {
                System.err.println("nereid: the fetch did not end within " + STOP_SECONDS + " seconds");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void fetchAll(List<FetchPair> pairs, FetchEnvironment environment, CancellationToken cancel) {
        List<StorageProvider> plugins = InstalledPlugins.loadStorageProviders();
        Map<Path, Set<String>> wanted = new LinkedHashMap<>();
        List<FetchEnvironment.Located> located = new ArrayList<>();
        for (FetchPair pair : pairs) {
            FetchEnvironment.Located source = environment.locate(pair.uri());
            located.add(source);
            wanted.computeIfAbsent(pair.directory(), d -> new LinkedHashSet<>()).add(source.uri());
        }
        for (int i = 0; i < pairs.size(); i++) {
            FetchEnvironment.Located source = located.get(i);
            Path directory = pairs.get(i).directory();
            StorageOptions options = StorageOptions.defaults(directory)
                    .withEnvironment(source.settings())
                    // The endpoints in the environment come from Secrets of the namespace, so none is trusted.
                    .withAccess(StorageAccess.of(storageAllow, !environment.inPod(), Map.of()));
            if (pvcRoot != null) {
                options = options.withPvcRoot(pvcRoot.toAbsolutePath());
            }
            try (DirectoryFetcher fetcher = new DirectoryFetcher(options, Clock.system(), plugins)) {
                fetcher.retain(directory, wanted.getOrDefault(directory, Set.of()));
                fetch(fetcher, source.uri(), directory, cancel);
            }
        }
    }

    private void fetch(DirectoryFetcher fetcher, String uri, Path directory, CancellationToken cancel) {
        String shown = StorageUri.shown(uri);
        print("fetching " + shown + " into " + directory);
        FetchProgress progress = new FetchProgress(
                spec.commandLine().getOut(), Terminal.err() ? spec.commandLine().getErr() : null, Clock.system());
        DirectoryFetcher.Fetched done = fetcher.fetch(StorageRequest.of(uri), directory, progress, cancel);
        String content = done.files() == 0
                ? "everything"
                : done.files()
                        + (done.files() == 1 ? " file" : " files")
                        + (done.bytes() == 0 ? "" : ", " + DownloadProgress.megabytes(done.bytes()) + " MB");
        print(
                switch (done.outcome()) {
                    case FETCHED ->
                        shown + " is in " + directory + ": " + content + ", in " + progress.seconds() + " s";
                    case UNCHANGED -> shown + " is in " + directory + " already: " + content;
                    case STALE ->
                        shown + " cannot be reached; " + directory + " has the last complete fetch of it: " + content;
                });
    }

    private void print(String line) {
        PrintWriter out = spec.commandLine().getOut();
        out.println(line);
        out.flush();
    }

    /** Writes the reason last, and shortly: the status of a pod shows the end of the log. */
    private void fail(ServingException failure, CancellationToken cancel) {
        boolean stopped = failure.code() == ErrorCode.CANCELLED && cancel.cancelled();
        String message = stopped ? "the fetch was interrupted" : String.valueOf(failure.getMessage());
        String remedy = stopped ? "start it again: it continues where it ended" : failure.remedy();
        TerminationLog.write(terminationLog, remedy == null ? message : message + "\n" + remedy);
        PrintWriter err = spec.commandLine().getErr();
        err.println("nereid: " + message);
        if (remedy != null) {
            err.println("  " + remedy);
        }
        err.flush();
    }
}
