// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.Storage;
import io.nereid.storage.request.ProgressListener;
import io.nereid.storage.request.StorageLease;
import io.nereid.storage.request.StorageRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.stream.Stream;

/**
 * Downloads a model of the Hugging Face Hub as transformers does: models there have their weights in several formats, of which one is
 * needed, safetensors before PyTorch's. Stateless.
 */
public final class HubDownload {
    private static final List<String> DESCRIPTIONS = List.of("*.json", "*.txt", "*.model");
    /** Exports for other programs, which have files of the same names in folders of their own. */
    private static final List<String> EXPORTS = List.of("onnx/*", "openvino/*", "coreml/*", ".*");

    private HubDownload() {}

    /**
     * Fetches a model; cancelling the future of the stage stops it.
     *
     * @param uri {@code hf://OWNER/MODEL}, with {@code :REVISION} or without
     * @param settings such as {@code HF_TOKEN}; they override the environment of the storage
     * @return as {@link Storage#fetch}
     */
    public static CompletionStage<StorageLease> fetch(
            Storage storage, String uri, Map<String, String> settings, ProgressListener progress) {
        CompletableFuture<StorageLease> first =
                storage.fetch(request(uri, settings, "*.safetensors"), progress).toCompletableFuture();
        CompletableFuture<StorageLease> result = new CompletableFuture<>();
        CompletableFuture<StorageLease> whole = first.thenCompose(lease -> {
            if (hasWeights(lease.path())) {
                return first;
            }
            lease.close();
            CompletableFuture<StorageLease> second =
                    storage.fetch(request(uri, settings, "*.bin"), progress).toCompletableFuture();
            cancelWith(result, second);
            return second;
        });
        cancelWith(result, first);
        var unused = whole.whenComplete((lease, e) -> {
            if (e != null) {
                result.completeExceptionally(e);
            } else if (!result.complete(lease)) {
                lease.close();
            }
        });
        return result;
    }

    private static void cancelWith(CompletableFuture<?> result, CompletableFuture<?> part) {
        var unused = result.whenComplete((lease, e) -> {
            if (result.isCancelled()) {
                part.cancel(true);
            }
        });
    }

    private static StorageRequest request(String uri, Map<String, String> settings, String weights) {
        List<String> allowed = new ArrayList<>(DESCRIPTIONS);
        allowed.add(weights);
        return new StorageRequest(uri, settings, allowed, EXPORTS);
    }

    private static boolean hasWeights(Path folder) {
        try (Stream<Path> files = Files.walk(folder)) {
            return files.anyMatch(file -> file.toString().endsWith(".safetensors"));
        } catch (IOException e) {
            throw ServingException.wrap(ErrorCode.UNAVAILABLE, "cannot read '" + folder + "'", null, e);
        }
    }
}
