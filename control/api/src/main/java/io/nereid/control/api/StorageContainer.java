// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import org.jspecify.annotations.Nullable;

/**
 * Which URIs are fetched by whom: {@code serving.kserve.io/v1alpha1 ClusterStorageContainer}. Immutable as long as nobody
 * changes the tree.
 *
 * @param metadata who it is
 * @param container what fetches
 * @param supportedUriFormats what it fetches
 * @param workloadType {@code initContainer} or {@code localModelDownloadJob}
 * @param supportsMultiModelDownload whether it takes several URIs at once
 * @param disabled whether it is never used
 */
public record StorageContainer(
        ObjectMeta metadata,
        Container container,
        List<UriFormat> supportedUriFormats,
        String workloadType,
        boolean supportsMultiModelDownload,
        boolean disabled) {

    /**
     * Reads a storage container.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a value of a wrong type
     */
    public static StorageContainer read(ObjectNode resource) {
        Fields fields = Fields.of(resource);
        Fields spec = fields.object("spec");
        Fields container = spec.object("container");
        return new StorageContainer(
                ObjectMeta.read(resource),
                Container.read(container.tree(), container.path()),
                spec.list("supportedUriFormats", UriFormat::read),
                spec.text("workloadType", "initContainer"),
                spec.flag("supportsMultiModelDownload", false),
                fields.flag("disabled", false));
    }

    /** Whether it fetches this URI. A disabled one does not. */
    public boolean supports(String uri) {
        return !disabled && supportedUriFormats.stream().anyMatch(format -> format.matches(uri));
    }

    /** A prefix, or a regular expression that is found at the start of the URI. One of the two is not null. */
    public record UriFormat(
            @Nullable String prefix, @Nullable String regex) {
        static UriFormat read(ObjectNode tree, String path) {
            Fields fields = new Fields(tree, path);
            return new UriFormat(fields.text("prefix"), fields.text("regex"));
        }

        boolean matches(String uri) {
            if (prefix != null && !prefix.isEmpty()) {
                return uri.startsWith(prefix);
            }
            if (regex == null || regex.isEmpty()) {
                return false;
            }
            try {
                return Pattern.compile(regex).matcher(uri).lookingAt();
            } catch (PatternSyntaxException e) {
                return false; // admission refuses those
            }
        }
    }
}
