// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes.node;

import io.fabric8.kubernetes.api.model.Service;
import io.nereid.base.Threads;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Answers the names of Services, {@code NAME.NAMESPACE.svc.cluster.local}, as the DNS of a cluster does: with the address of
 * the Service, with those of its ready pods if it has none, or with the external name. Messages as in RFC 1035, over UDP.
 * Thread-safe.
 */
final class ClusterDns implements AutoCloseable {
    static final String ADDRESS = "10.0.0.10";

    private static final Logger LOG = LoggerFactory.getLogger(ClusterDns.class);
    private static final String SUFFIX = ".svc.cluster.local";
    private static final int TYPE_A = 1;
    private static final int TYPE_CNAME = 5;
    private static final int NAME_ERROR = 3;
    private static final int SECONDS = 1;

    private final ServiceProxy services;
    private final DatagramSocket socket;

    ClusterDns(ServiceProxy services) throws IOException {
        this.services = services;
        this.socket = new DatagramSocket(new InetSocketAddress(ADDRESS, 53));
        Threads.named("cluster-dns").newThread(this::serve).start();
    }

    private void serve() {
        byte[] bytes = new byte[4096];
        while (!socket.isClosed()) {
            try {
                DatagramPacket packet = new DatagramPacket(bytes, bytes.length);
                socket.receive(packet);
                byte[] answer = answer(ByteBuffer.wrap(bytes, 0, packet.getLength()));
                socket.send(new DatagramPacket(answer, answer.length, packet.getSocketAddress()));
            } catch (IOException | RuntimeException e) {
                if (!socket.isClosed()) {
                    LOG.warn("DNS", e);
                }
            }
        }
    }

    private record Answer(String name, int type, byte[] data) {}

    private byte[] answer(ByteBuffer query) throws IOException {
        int id = query.getShort() & 0xffff;
        int flags = query.getShort() & 0xffff;
        query.position(12);
        List<String> labels = new ArrayList<>();
        for (int length = query.get(); length > 0; length = query.get()) {
            byte[] label = new byte[length];
            query.get(label);
            labels.add(new String(label, StandardCharsets.US_ASCII));
        }
        int type = query.getShort();
        byte[] question = new byte[query.position() + Short.BYTES - 12];
        query.position(12).get(question);
        String name = String.join(".", labels).toLowerCase(Locale.ROOT);
        List<Answer> answers = new ArrayList<>();
        boolean known = resolve(name, answers, 0);
        if (type != TYPE_A) {
            answers.clear();
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeShort(id);
        // A response, authoritative, with the client's wish for recursion and recursion available.
        out.writeShort(0x8480 | flags & 0x0100 | (known ? 0 : NAME_ERROR));
        out.writeShort(1);
        out.writeShort(answers.size());
        out.writeInt(0);
        out.write(question);
        for (Answer answer : answers) {
            out.write(encoded(answer.name()));
            out.writeShort(answer.type());
            out.writeShort(1);
            out.writeInt(SECONDS);
            out.writeShort(answer.data().length);
            out.write(answer.data());
        }
        return bytes.toByteArray();
    }

    /** Adds the records of a name; false if there is not such a name. */
    private boolean resolve(String name, List<Answer> answers, int depth) throws IOException {
        if (!name.endsWith(SUFFIX) || depth > 8) {
            return false;
        }
        String[] parts = name.substring(0, name.length() - SUFFIX.length()).split("\\.");
        if (parts.length != 2) {
            return false;
        }
        for (Service service : services.services()) {
            if (!service.getMetadata().getName().equals(parts[0])
                    || !service.getMetadata().getNamespace().equals(parts[1])) {
                continue;
            }
            String external = service.getSpec().getExternalName();
            String address = service.getSpec().getClusterIP();
            if (external != null && !external.isEmpty()) {
                answers.add(new Answer(name, TYPE_CNAME, encoded(external)));
                boolean unused = resolve(external, answers, depth + 1);
            } else if ("None".equals(address)) {
                for (String pod : services.readyAddresses(parts[1], parts[0])) {
                    answers.add(
                            new Answer(name, TYPE_A, InetAddress.getByName(pod).getAddress()));
                }
            } else if (address != null && !address.isEmpty()) {
                answers.add(
                        new Answer(name, TYPE_A, InetAddress.getByName(address).getAddress()));
            }
            return true;
        }
        return false;
    }

    private static byte[] encoded(String name) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (String label : name.split("\\.")) {
            byte[] text = label.getBytes(StandardCharsets.US_ASCII);
            bytes.write(text.length);
            bytes.write(text);
        }
        bytes.write(0);
        return bytes.toByteArray();
    }

    @Override
    public void close() {
        socket.close();
    }
}
