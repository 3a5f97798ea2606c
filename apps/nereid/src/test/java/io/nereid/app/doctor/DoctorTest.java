// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.app.Main;
import io.nereid.app.doctor.Finding.Level;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class DoctorTest {
    private static final long GIB = 1L << 30;
    private static final String KEYS = """
        {"keys": [{"name": "app", "id": "0a1b2c3d4e5f", "sha256": "%s", "roles": ["client", "scorer"],
                   "created": "2026-01-31T10:00:00Z"}]}
        """.replace("%s", "0".repeat(64));

    @TempDir
    private Path dir;

    private final StringWriter out = new StringWriter();

    private int run(String... args) {
        out.getBuffer().setLength(0);
        CommandLine command = Main.commandLine();
        command.setOut(new PrintWriter(out, true)).setErr(new PrintWriter(out, true));
        return command.execute(args);
    }

    private int doctor(String... args) {
        String[] all = new String[4 + args.length];
        List.of("doctor", "--port=0", "--python=none-such", "--control-directory=" + dir)
                .toArray(all);
        System.arraycopy(args, 0, all, 4, args.length);
        return run(all);
    }

    private Path keys(String mode) throws Exception {
        Path file = dir.resolve("keys.json");
        Files.writeString(file, KEYS);
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(mode));
        return file;
    }

    @Test
    void aPortInUseFailsWithARemedy() throws Exception {
        try (ServerSocket used = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            assertThat(doctor("--grpc-port", Integer.toString(used.getLocalPort())))
                    .isEqualTo(1);
            assertThat(out.toString())
                    .contains("FAIL  ports       --grpc-port 127.0.0.1:" + used.getLocalPort() + " cannot be used")
                    .contains("choose another port");
        }
        assertThat(AccessChecks.port("--port", "127.0.0.1", 70_000).level()).isEqualTo(Level.FAIL);
        assertThat(AccessChecks.port("--port", "192.0.2.1", 0).level()).isEqualTo(Level.FAIL);
        assertThat(AccessChecks.port("--port", "127.0.0.1", 0).level()).isEqualTo(Level.OK);
    }

    @Test
    void keysThatOthersCanReadFail() throws Exception {
        Path file = keys("rw-r--r--");
        assertThat(doctor("--api-keys", file.toString())).isEqualTo(1);
        assertThat(out.toString()).contains("FAIL  secrets").contains("chmod 600 " + file);
        assertThat(AccessChecks.keys(keys("rw-------")))
                .extracting(Finding::level)
                .containsExactly(Level.OK);
        assertThat(AccessChecks.keys(dir.resolve("absent")))
                .extracting(Finding::level)
                .containsExactly(Level.FAIL);
        Path token = dir.resolve("control-token");
        Files.writeString(token, "x");
        Files.setPosixFilePermissions(token, PosixFilePermissions.fromString("rw-rw----"));
        assertThat(doctor()).isEqualTo(1);
        assertThat(out.toString()).contains("the control token '" + token + "' can be read");
    }

    @Test
    void openManagementOnOtherAddressesIsTold() {
        assertThat(AccessChecks.management("127.0.0.1", false, true, true).level())
                .isEqualTo(Level.OK);
        assertThat(AccessChecks.management("0.0.0.0", false, false, false).level())
                .isEqualTo(Level.OK);
        assertThat(AccessChecks.management("0.0.0.0", false, true, false).level())
                .isEqualTo(Level.WARN);
        assertThat(AccessChecks.management("0.0.0.0", false, true, true).level())
                .isEqualTo(Level.FAIL);
        assertThat(doctor("--host=0.0.0.0", "--open-management", "--allow-model-upload"))
                .isEqualTo(1);
        assertThat(out.toString()).contains("everyone who reaches the port can run code");
    }

    @Test
    void memoryFilesAndDiskAreComparedWithWhatAServerNeeds() {
        assertThat(ProcessChecks.memory(8 * GIB, 2 * GIB, GIB).level()).isEqualTo(Level.OK);
        assertThat(ProcessChecks.memory(4 * GIB, 2 * GIB, 2 * GIB).level()).isEqualTo(Level.WARN);
        assertThat(ProcessChecks.memory(GIB, 2 * GIB, GIB).level()).isEqualTo(Level.FAIL);
        assertThat(ProcessChecks.files(100).level()).isEqualTo(Level.FAIL);
        assertThat(ProcessChecks.files(1024).level()).isEqualTo(Level.WARN);
        assertThat(ProcessChecks.files(65_536).level()).isEqualTo(Level.OK);
        assertThat(ProcessChecks.disk(dir, 1 << 20, true).level()).isEqualTo(Level.FAIL);
        assertThat(ProcessChecks.disk(dir, GIB / 2, true).level()).isEqualTo(Level.WARN);
        assertThat(ProcessChecks.disk(dir, 2 * GIB, false).level()).isEqualTo(Level.WARN);
        assertThat(ProcessChecks.disk(dir.resolve("not/yet/there")).text()).contains("not/yet/there");
    }

    @Test
    void anInterpreterWithoutNumpyOrOfAnotherKindIsTold() throws Exception {
        Path python = dir.resolve("python");
        Files.writeString(python, "#!/bin/sh\necho 3.11.2\necho none\n");
        python.toFile().setExecutable(true);
        assertThat(ProcessChecks.python(python.toString()))
                .singleElement()
                .satisfies(f -> assertThat(f.level() + f.text()).contains("WARN", "3.11.2", "without numpy"));
        Files.writeString(python, "#!/bin/sh\necho 3.11.2\necho 2.1.0\n");
        assertThat(ProcessChecks.python(python.toString()))
                .singleElement()
                .satisfies(f -> assertThat(f.level() + f.text()).contains("OK", "numpy 2.1.0"));
        Files.writeString(python, "#!/bin/sh\nexit 3\n");
        assertThat(ProcessChecks.python(python.toString()))
                .extracting(Finding::level)
                .containsExactly(Level.WARN);
    }

    @Test
    void jsonHasTheSameFindings() throws Exception {
        int code = doctor("--json");
        JsonNode tree = new ObjectMapper().readTree(out.toString());
        assertThat(tree.path("ok").asBoolean()).isEqualTo(code == 0);
        List<String> checks = new java.util.ArrayList<>();
        tree.path("findings").forEach(f -> checks.add(f.path("check").asText()));
        assertThat(checks).contains("ports", "memory", "files", "java", "plugins", "python", "disk", "management");
        tree.path("findings")
                .forEach(f -> assertThat(f.has("remedy"))
                        .as(f.toString())
                        .isEqualTo(!f.path("level").asText().equals("OK")));
    }

    @Test
    void validateTellsEveryEntryOfTheRulesThatIsWrongAndRolesThatDoNotExist() throws Exception {
        Path rules = dir.resolve("access.yaml");
        Files.writeString(rules, """
            roles:
              scorer: {permissions: [infer, fly]}
              other: {permissions: [infer], modells: [x]}
            bindings:
              - {key: app, roles: [scorer]}
              - {key: app, roles: [unknown]}
              - {roles: [scorer]}
            """);
        assertThat(run("validate", "--access-config", rules.toString())).isEqualTo(1);
        assertThat(out.toString())
                .contains("roles.scorer.permissions", "fly")
                .contains("roles.other", "modells")
                .contains("bindings[1].roles", "unknown")
                .contains("bindings[2]", "exactly one")
                .doesNotContain("bindings[0]");
        Files.writeString(rules, "roles: {writer: {permissions: [manage]}}\n");
        Path keys = keys("rw-------");
        assertThat(run("validate", "--access-config", rules.toString())).isZero();
        assertThat(run("validate", "--access-config", rules.toString(), "--api-keys", keys.toString()))
                .isEqualTo(1);
        assertThat(out.toString()).contains("key 'app' has the role 'scorer', which does not exist");
        Files.writeString(rules, "roles: {scorer: {permissions: [infer]}}\n");
        assertThat(run("validate", "--access-config", rules.toString(), "--api-keys", keys.toString()))
                .isZero();
        assertThat(out.toString()).contains("1 API keys");
        Files.writeString(rules, "roles: [\n");
        assertThat(run("validate", "--access-config", rules.toString())).isEqualTo(1);
        assertThat(out.toString()).contains("is not YAML");
    }
}
