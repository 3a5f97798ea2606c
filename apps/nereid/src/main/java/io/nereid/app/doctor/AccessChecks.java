// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.doctor;

import io.nereid.access.config.AccessConfigReader;
import io.nereid.access.credential.ApiKeyFile;
import io.nereid.app.connection.OwnerOnlyFile;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Checks the addresses of a server, who may use it, and the files with its secrets. Stateless. */
final class AccessChecks {
    private AccessChecks() {}

    /** Whether a server could listen on a port. */
    static Finding port(String option, String host, int port) {
        String text = option + " " + host + ":" + port;
        if (port < 0 || port > 65_535) {
            return Finding.fail("ports", option + " " + port + " is not a port", "use 0 to 65535");
        }
        try (ServerSocket probe = new ServerSocket()) {
            probe.setReuseAddress(true); // as the server does
            probe.bind(new InetSocketAddress(InetAddress.getByName(host), port));
            return Finding.ok("ports", text + " is free");
        } catch (UnknownHostException e) {
            return Finding.fail("ports", "'" + host + "' is not an address", "use an address of this machine");
        } catch (IOException e) {
            return Finding.fail(
                    "ports",
                    text + " cannot be used: " + e.getMessage(),
                    "stop the process that uses it, which may be this server, or choose another port or address");
        }
    }

    /** Who may load models and change settings. */
    static Finding management(String host, boolean credentials, boolean open, boolean upload) {
        if (isLoopback(host)) {
            return Finding.ok("management", "loading models and changing settings: for this machine only");
        }
        if (open && upload) {
            return Finding.fail(
                    "management",
                    "--open-management and --allow-model-upload on " + host
                            + ": everyone who reaches the port can run code",
                    "use --api-keys instead of --open-management, or --host 127.0.0.1");
        }
        if (open) {
            return Finding.warn(
                    "management",
                    "--open-management on " + host + ": everyone who reaches the port can load models",
                    "use --api-keys FILE, made with: nereid keys create NAME --role manager");
        }
        return Finding.ok(
                "management",
                "loading models and changing settings: " + (credentials ? "for API keys and tokens" : "closed"));
    }

    private static boolean isLoopback(String host) {
        try {
            return InetAddress.getByName(host).isLoopbackAddress();
        } catch (UnknownHostException e) {
            return false;
        }
    }

    /** Whether a file with secrets is there for its owner alone. */
    private static Finding secret(String what, Path file) {
        return OwnerOnlyFile.isOpen(file)
                ? Finding.fail(
                        "secrets",
                        what + " '" + file + "' can be read or written by others than its owner",
                        "chmod 600 " + file)
                : Finding.ok("secrets", what + " '" + file + "' is for its owner only");
    }

    static List<Finding> keys(Path file) {
        if (!Files.exists(file)) {
            return List.of(Finding.fail(
                    "secrets",
                    "there is no file of API keys '" + file + "'",
                    "make it with: nereid keys create NAME --file " + file));
        }
        List<Finding> all = new ArrayList<>();
        try {
            int count = new ApiKeyFile(file).read().size();
            all.add(secret(count + " API keys in", file));
        } catch (ServingException e) {
            all.add(failed("secrets", e));
        }
        return all;
    }

    static List<Finding> rules(Path file) {
        List<Finding> all = new ArrayList<>();
        for (ServingException error : AccessConfigReader.errors(file)) {
            all.add(failed("rules", error));
        }
        if (all.isEmpty()) {
            all.add(
                    OwnerOnlyFile.isWritableByOthers(file)
                            ? Finding.fail(
                                    "rules",
                                    "'" + file + "' can be written by others than its owner",
                                    "chmod go-w " + file)
                            : Finding.ok("rules", "'" + file + "' is valid"));
        }
        return all;
    }

    /** A file with secrets that need not exist. */
    static @Nullable Finding existing(String what, Path file) {
        return Files.exists(file) ? secret(what, file) : null;
    }

    private static Finding failed(String check, ServingException e) {
        return Finding.fail(check, e.getMessage(), e.remedy() == null ? "correct the file" : e.remedy());
    }
}
