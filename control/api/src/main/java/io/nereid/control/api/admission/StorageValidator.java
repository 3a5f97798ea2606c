// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import io.nereid.control.api.ClusterStorageContainer;
import io.nereid.control.api.InferenceService.StorageSpec;
import io.nereid.control.api.InferenceService.StorageUri;
import io.nereid.control.api.ValidationErrors;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Validates storage URIs, storage specs and mount paths. Confined to one admission. */
final class StorageValidator {
    private static final List<String> SCHEMES = List.of(
            "gs",
            "s3",
            "pvc",
            "file",
            "https",
            "http",
            "hdfs",
            "webhdfs",
            "hf",
            "oci",
            "oci+native",
            "oci+fetch",
            "oci+modelcar");

    /** The storage types that a {@code storage} block supports. */
    private static final List<String> TYPES = List.of("s3", "hdfs", "webhdfs");

    private static final Pattern SCHEME = Pattern.compile("([A-Za-z][A-Za-z0-9+.-]*):(/*)(.*)", Pattern.DOTALL);

    private final List<ClusterStorageContainer> containers;
    private final ValidationErrors problems;

    StorageValidator(List<ClusterStorageContainer> containers, ValidationErrors problems) {
        this.containers = containers;
        this.problems = problems;
    }

    /** Validates a URI. A URI that a ClusterStorageContainer supports may have any scheme. */
    void uri(String path, String uri, @Nullable String container) {
        if (uri.isBlank()) {
            problems.add(path, "empty; expected where the files are, such as s3://bucket/path");
            return;
        }
        if (container != null) {
            ClusterStorageContainer named = containers.stream()
                    .filter(one -> one.metadata().name().equals(container))
                    .findFirst()
                    .orElse(null);
            if (named == null || named.supports(uri)) {
                return; // the planner reports a storage container that does not exist
            }
        } else if (containers.stream().anyMatch(one -> one.supports(uri))) {
            return;
        }
        Matcher matcher = SCHEME.matcher(uri);
        if (!matcher.matches()) {
            return; // a path
        }
        String scheme = matcher.group(1).toLowerCase(Locale.ROOT);
        boolean known = SCHEMES.contains(scheme);
        if (matcher.group(2).length() < 2) {
            if (known) {
                problems.add(path, "\"" + ValidationErrors.clip(uri) + "\" lacks slashes; write " + scheme + "://...");
            }
        } else if (!known) {
            problems.add(
                    path,
                    "StorageURI not supported: \"" + ValidationErrors.clip(uri) + "\": the scheme is not one of "
                            + String.join(", ", SCHEMES) + ValidationErrors.didYouMean(scheme, SCHEMES)
                            + ", or add a ClusterStorageContainer that supports it");
        } else if (matcher.group(3).isEmpty() && !scheme.equals("file")) {
            problems.add(path, "\"" + ValidationErrors.clip(uri) + "\" has nothing after " + scheme + "://");
        }
    }

    /** Validates {@code storageUri} and {@code storage} of a model or an explainer. */
    void source(String path, @Nullable String uri, @Nullable StorageSpec storage, @Nullable String container) {
        if (uri != null) {
            uri(path + ".storageUri", uri, container);
        }
        if (storage == null) {
            return;
        }
        if (uri != null && storage.path() != null) {
            problems.add(path + ".storage.path", "storageUri and storage.path exclude each other");
        } else if (uri != null && TYPES.stream().noneMatch(type -> uri.startsWith(type + "://"))) {
            problems.add(
                    path + ".storageUri",
                    "with storage beside it, it must begin with s3://, hdfs:// or webhdfs://, found \""
                            + ValidationErrors.clip(uri) + "\"");
        }
        String type = storage.parameters().get("type");
        if (type != null && !TYPES.contains(type)) {
            problems.add(path + ".storage.parameters.type", ValidationErrors.unknownValue(type, TYPES));
        }
    }

    /** Validates {@code storageUris}: each URI, and that the mount paths are distinct and have a common parent. */
    void uris(String path, List<StorageUri> uris, @Nullable String container) {
        Set<String> volumes = new HashSet<>();
        List<String> others = new ArrayList<>();
        for (int i = 0; i < uris.size(); i++) {
            StorageUri one = uris.get(i);
            String at = path + "[" + i + "]";
            uri(at + ".uri", one.uri(), container);
            String mount = one.mountPath();
            if (!mount.startsWith("/")) {
                problems.add(at + ".mountPath", "\"" + ValidationErrors.clip(mount) + "\" must be absolute");
            } else if (mount.chars().allMatch(c -> c == '/')) {
                problems.add(at + ".mountPath", "must not be the root");
            } else if (List.of(mount.split("/")).contains("..")) {
                problems.add(at + ".mountPath", "\"" + ValidationErrors.clip(mount) + "\" must not contain '..'");
            } else if (one.uri().startsWith("pvc://")) {
                if (!volumes.add(mount)) {
                    problems.add(
                            at + ".mountPath",
                            "\"" + ValidationErrors.clip(mount) + "\" is another volume's path as well");
                }
            } else {
                others.add(mount);
            }
        }
        if (others.size() > 1 && commonParent(others).isEmpty()) {
            problems.add(
                    path,
                    "the mount paths " + ValidationErrors.clip(String.join(", ", others))
                            + " must have a common parent other than the root");
        }
    }

    /** The longest common parent of all paths; empty if that is the root. */
    private static String commonParent(List<String> paths) {
        List<String> common = segments(paths.get(0));
        for (String path : paths) {
            List<String> other = segments(path);
            int same = 0;
            while (same < Math.min(common.size(), other.size())
                    && common.get(same).equals(other.get(same))) {
                same++;
            }
            common = common.subList(0, same);
        }
        return String.join("/", common);
    }

    private static List<String> segments(String path) {
        return java.util.Arrays.stream(path.split("/"))
                .filter(segment -> !segment.isEmpty())
                .toList();
    }
}
