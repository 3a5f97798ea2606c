// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import com.sun.tools.attach.AttachNotSupportedException;
import com.sun.tools.attach.VirtualMachine;
import java.io.IOException;
import java.util.Arrays;
import javax.management.JMException;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/** Reads how many bytes the live threads of a server have allocated on its heap, over JMX. Confined to one thread. */
public final class AllocationProbe implements AutoCloseable {
    private static final String THREADING = "java.lang:type=Threading";

    private final JMXConnector connector;
    private final MBeanServerConnection beans;

    /** Attaches to a server that runs as the same user. */
    @SuppressWarnings("BanJNDI") // the address is that of a process that this program has started itself
    public AllocationProbe(ServerProcess server) throws IOException {
        try {
            VirtualMachine machine = VirtualMachine.attach(Long.toString(server.pid()));
            String address = machine.startLocalManagementAgent();
            machine.detach();
            connector = JMXConnectorFactory.connect(new JMXServiceURL(address));
            beans = connector.getMBeanServerConnection();
        } catch (AttachNotSupportedException e) {
            throw new IOException("cannot attach to " + server.name(), e);
        }
    }

    /** The bytes that all live threads have allocated since they started. */
    public double bytes() throws IOException {
        try {
            ObjectName threading = new ObjectName(THREADING);
            long[] ids = (long[]) beans.getAttribute(threading, "AllThreadIds");
            long[] bytes = (long[]) beans.invoke(
                    threading, "getThreadAllocatedBytes", new Object[] {ids}, new String[] {long[].class.getName()});
            return Arrays.stream(bytes).filter(b -> b > 0).sum();
        } catch (JMException e) {
            throw new IOException("cannot read the allocated bytes", e);
        }
    }

    @Override
    public void close() throws IOException {
        connector.close();
    }
}
