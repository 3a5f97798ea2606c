// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.process;

import java.io.IOException;
import java.io.InputStream;
import java.util.Properties;
import picocli.CommandLine.IVersionProvider;

/** The program's version, set by the build. Stateless. */
public final class ProgramVersion implements IVersionProvider {
    public static String number() {
        Properties build = new Properties();
        try (InputStream in = ProgramVersion.class.getResourceAsStream("/io/nereid/app/build.properties")) {
            if (in != null) {
                build.load(in);
            }
        } catch (IOException e) {
            return "unknown";
        }
        return build.getProperty("version", "unknown");
    }

    @Override
    public String[] getVersion() {
        return new String[] {"nereid " + number()};
    }
}
