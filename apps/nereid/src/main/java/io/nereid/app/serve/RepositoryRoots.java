// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The repositories of a command line. Immutable.
 *
 * @param roots repositories, model directories and model files, each once, in the given order
 * @param missing those that do not exist
 */
record RepositoryRoots(List<Path> roots, List<Path> missing) {
    /**
     * Checks what is given.
     *
     * @param listed whether models are named in another way, so that there may be no repository
     * @param lenient whether a repository may be missing
     * @throws ServingException INVALID_ARGUMENT without any models, NOT_FOUND for a missing repository
     */
    static RepositoryRoots of(List<Path> given, boolean listed, boolean lenient) {
        if (given.isEmpty() && !listed) {
            throw ServingException.invalidArgument(
                    "no models given (expected a directory of models, --model_config_file or --model_base_path)",
                    "for example: nereid serve examples/models");
        }
        Map<Path, Path> distinct = new LinkedHashMap<>();
        given.forEach(root -> distinct.putIfAbsent(root.toAbsolutePath().normalize(), root));
        List<Path> missing = new ArrayList<>();
        for (Path root : distinct.values()) {
            if (Files.exists(root)) {
                continue;
            }
            if (!lenient) {
                throw ServingException.of(
                        ErrorCode.NOT_FOUND,
                        "there is no '" + root + "' (expected a model repository, a model's directory or a model file)",
                        "check the path; it is relative to " + Path.of("").toAbsolutePath());
            }
            missing.add(root);
        }
        return new RepositoryRoots(List.copyOf(distinct.values()), List.copyOf(missing));
    }
}
