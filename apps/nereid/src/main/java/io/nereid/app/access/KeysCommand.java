// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.access;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.access.credential.ApiKey;
import io.nereid.access.credential.ApiKeyFile;
import io.nereid.app.text.DurationConverter;
import io.nereid.app.text.OutputOption;
import io.nereid.app.text.TextTable;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid keys}: makes, lists and revokes the API keys of a server. */
@Command(
        name = "keys",
        mixinStandardHelpOptions = true,
        description =
                "API keys of a server that runs with --api-keys FILE. A server reads the file again when it changes.",
        subcommands = {CommandLine.HelpCommand.class})
@SuppressWarnings("NullAway.Init") // options are set by picocli
public final class KeysCommand {
    @Spec
    private CommandSpec spec;

    private final Clock clock = Clock.systemUTC();

    /** The option that all subcommands share. */
    static final class FileOption {
        @Option(
                names = {"-f", "--file"},
                paramLabel = "FILE",
                defaultValue = "keys.json",
                description = "The file of API keys (default: ${DEFAULT-VALUE}).")
        Path file;
    }

    private PrintWriter out() {
        return spec.commandLine().getOut();
    }

    @Command(
            name = "create",
            mixinStandardHelpOptions = true,
            description = "Make a key and print it. It is shown this once; the file keeps a hash of it.")
    int create(
            @Parameters(paramLabel = "NAME", description = "The name in audit logs and metrics.") String name,
            @CommandLine.Mixin FileOption in,
            @CommandLine.Mixin OutputOption output,
            @Option(
                            names = "--role",
                            paramLabel = "ROLE",
                            split = ",",
                            description =
                                    "client (infer, metadata, health), viewer (reads everything), manager (also loads"
                                            + " models), admin (everything), or a role of access.yaml; may be repeated (default:"
                                            + " client).")
                    @Nullable List<String> roles,
            @Option(
                            converter = DurationConverter.class,
                            names = "--expires",
                            paramLabel = "DURATION",
                            description = "How long the key is valid, such as 12h or 90d; for ever without.")
                    @Nullable String expires) {
        ApiKeyFile.checkName(name);
        Instant now = clock.instant().truncatedTo(ChronoUnit.SECONDS);
        ApiKey.Created made = ApiKey.create(
                name,
                roles == null || roles.isEmpty() ? List.of("client") : roles,
                now,
                expires == null ? null : now.plus(Units.duration(expires)));
        new ApiKeyFile(in.file).update(keys -> {
            for (ApiKey key : keys) {
                if (key.name().equals(name)) {
                    throw ServingException.of(
                            ErrorCode.ALREADY_EXISTS,
                            "'" + in.file + "' has a key '" + name + "' already",
                            "choose another name, or delete it: nereid keys revoke " + name + " --delete");
                }
            }
            List<ApiKey> all = new ArrayList<>(keys);
            all.add(made.key());
            return all;
        });
        if (output.format().isDocument()) {
            ObjectNode document = JsonNodeFactory.instance.objectNode().put("name", name);
            document.put("key", made.text());
            ArrayNode list = document.putArray("roles");
            made.key().roles().forEach(list::add);
            document.put("expires", text(made.key().expires()));
            output.format().print(document, out());
            return 0;
        }
        spec.commandLine()
                .getErr()
                .println("key '" + name + "' of the role "
                        + String.join(", ", made.key().roles())
                        + (made.key().expires() == null
                                ? ""
                                : ", valid until " + made.key().expires())
                        + "; it is shown this once:");
        spec.commandLine().getErr().flush();
        out().println(made.text());
        out().flush();
        return 0;
    }

    @Command(name = "list", mixinStandardHelpOptions = true, description = "List the keys, without their secrets.")
    int list(@CommandLine.Mixin FileOption in, @CommandLine.Mixin OutputOption output) {
        ApiKeyFile file = new ApiKeyFile(in.file);
        Map<String, Instant> used = file.lastUsed();
        Instant now = clock.instant();
        if (output.format().isDocument()) {
            ArrayNode list = JsonNodeFactory.instance.arrayNode();
            for (ApiKey key : file.read()) {
                ObjectNode each = list.addObject().put("name", key.name()).put("id", key.id());
                ArrayNode roles = each.putArray("roles");
                key.roles().forEach(roles::add);
                each.put("created", key.created().toString());
                each.put("expires", text(key.expires())).put("last_used", text(used.get(key.id())));
                each.put("state", state(key, now));
            }
            output.format().print(list, out());
            return 0;
        }
        TextTable table = new TextTable("NAME", "ID", "ROLES", "CREATED", "EXPIRES", "LAST USED", "STATE");
        for (ApiKey key : file.read()) {
            table.row(
                    key.name(),
                    key.id(),
                    String.join(",", key.roles()),
                    key.created().toString(),
                    key.expires() == null ? "never" : key.expires().toString(),
                    used.containsKey(key.id()) ? String.valueOf(used.get(key.id())) : "-",
                    state(key, now));
        }
        table.print(out());
        out().flush();
        return 0;
    }

    private static String state(ApiKey key, Instant now) {
        return key.revoked() != null ? "revoked" : key.validAt(now) ? "valid" : "expired";
    }

    private static @Nullable String text(@Nullable Instant time) {
        return time == null ? null : time.toString();
    }

    @Command(
            name = "revoke",
            mixinStandardHelpOptions = true,
            description = "Make a key invalid, at once where a server reads the file.")
    int revoke(
            @Parameters(paramLabel = "NAME", description = "The name of the key.") String name,
            @CommandLine.Mixin FileOption in,
            @Option(names = "--delete", description = "Remove the key from the file, so that its name is free.")
                    boolean delete) {
        Instant now = clock.instant().truncatedTo(ChronoUnit.SECONDS);
        new ApiKeyFile(in.file).update(keys -> {
            List<ApiKey> all = new ArrayList<>();
            boolean found = false;
            for (ApiKey key : keys) {
                if (!key.name().equals(name)) {
                    all.add(key);
                    continue;
                }
                found = true;
                if (!delete) {
                    all.add(new ApiKey(
                            key.name(),
                            key.id(),
                            key.hash(),
                            key.roles(),
                            key.created(),
                            key.expires(),
                            key.revoked() == null ? now : key.revoked()));
                }
            }
            if (!found) {
                throw ServingException.of(
                        ErrorCode.NOT_FOUND,
                        "there is no key '" + name + "' in '" + in.file + "'",
                        "nereid keys list shows the keys");
            }
            return all;
        });
        out().println("key '" + name + "' is " + (delete ? "deleted" : "revoked"));
        out().flush();
        return 0;
    }
}
