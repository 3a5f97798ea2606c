// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.data;

import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.FuzzTargets;
import io.nereid.transport.tls.PemFile;
import java.util.List;

/** A file of certificates, as clients of the control API and options name them. Confined to one thread. */
public final class CertificateTarget implements FuzzTarget {
    @Override
    public void read(byte[] input) {
        new PemFile("f.pem", input).certificates();
    }

    @Override
    public List<byte[]> seeds() {
        return FuzzTargets.texts(
                "-----BEGIN CERTIFICATE-----\n"
                        + "MIIBLzCB16ADAgECAghO0vIhwb7TMjAKBggqhkjOPQQDAjAMMQowCAYDVQQDEwFh\n"
                        + "MCAXDTI2MTEyNDE1NTgyOFoYDzIxMjYxMDMxMTU1ODI4WjAMMQowCAYDVQQDEwFh\n"
                        + "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEjVn3J7atIH0EqzLqVVkStPiFJHWt\n"
                        + "yk8Q5dyXGcJyEf/fLcV3lORhGaOTpBZMG9XtfsmhVYQEYGPnXW4t1M+43qMhMB8w\n"
                        + "HQYDVR0OBBYEFFXTF4y+BFIkciRKUFYA2yM/hLvMMAoGCCqGSM49BAMCA0cAMEQC\n"
                        + "IHJvGPlqPJYPKNTyIioCbHQoQ1tpOvSagvvJZTD1pHqyAiAiEutRbBO8pZDBHtXi\n"
                        + "dMM2y26a5qUpy9R7UTd4QorQGQ==\n"
                        + "-----END CERTIFICATE-----\n",
                "x\n-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    }
}
