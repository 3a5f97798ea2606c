// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

class GatewayCommandTest {
    private static String refused(String... arguments) {
        StringWriter out = new StringWriter();
        CommandLine command = new CommandLine(new GatewayCommand());
        command.setOut(new PrintWriter(out, true)).setErr(new PrintWriter(out, true));
        assertThat(command.execute(arguments)).as(out.toString()).isEqualTo(1);
        return out.toString();
    }

    @Test
    void optionsThatDoNotFitTogetherAreRefusedBeforeTheClusterIsAsked() {
        assertThat(refused("--tls-cert=/nowhere/tls.crt")).contains("--tls-key is missing");
        assertThat(refused("--tls-client-ca=/nowhere/ca.crt")).contains("no effect without a certificate");
        assertThat(refused("--grace-period=5m", "--drain-timeout=1m")).contains("leaves no time for requests");
    }
}
