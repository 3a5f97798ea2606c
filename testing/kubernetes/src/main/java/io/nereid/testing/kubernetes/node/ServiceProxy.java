// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes.node;

import io.fabric8.kubernetes.api.model.Service;
import io.fabric8.kubernetes.api.model.ServicePort;
import io.fabric8.kubernetes.api.model.discovery.v1.Endpoint;
import io.fabric8.kubernetes.api.model.discovery.v1.EndpointPort;
import io.fabric8.kubernetes.api.model.discovery.v1.EndpointSlice;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import io.nereid.base.Threads;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadLocalRandom;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What kube-proxy does, by connections that are passed on: it listens on the ports of every Service that has an address, and
 * connects to a pod of the Service that is ready; without one, to one that ends but still serves. TCP only. Thread-safe.
 */
final class ServiceProxy implements AutoCloseable {
    /** The address of the API server's Service, which has no EndpointSlice. */
    static final String API_ADDRESS = "10.0.0.1";

    private static final Logger LOG = LoggerFactory.getLogger(ServiceProxy.class);
    private static final int CONNECT_MILLIS = 5000;

    private final SharedIndexInformer<Service> services;
    private final SharedIndexInformer<EndpointSlice> slices;
    private final ThreadFactory threads = Threads.named("service-proxy");
    private final InetSocketAddress apiServer;
    /** The open ports, by {@code address:port}. */
    private final Map<String, ServerSocket> open = new HashMap<>();

    ServiceProxy(KubernetesClient client) {
        java.net.URL master = client.getMasterUrl();
        this.apiServer = new InetSocketAddress(master.getHost(), master.getPort());
        this.slices = client.discovery().v1().endpointSlices().inAnyNamespace().inform();
        this.services = client.services().inAnyNamespace().inform(new ResourceEventHandler<>() {
            @Override
            public void onAdd(Service service) {
                look();
            }

            @Override
            public void onUpdate(Service before, Service service) {
                look();
            }

            @Override
            public void onDelete(Service service, boolean unknown) {
                look();
            }
        });
        look();
    }

    /** The Services of the cluster, as this proxy sees them. */
    List<Service> services() {
        return services.getStore().list();
    }

    /** The addresses of a Service's pods that are ready. */
    List<String> readyAddresses(String namespace, String service) {
        List<String> addresses = new ArrayList<>();
        for (EndpointSlice slice : slices(namespace, service)) {
            for (Endpoint endpoint : endpoints(slice)) {
                if (Boolean.TRUE.equals(endpoint.getConditions().getReady())) {
                    addresses.addAll(endpoint.getAddresses());
                }
            }
        }
        return addresses;
    }

    private List<EndpointSlice> slices(String namespace, String service) {
        return slices.getStore().list().stream()
                .filter(one -> one.getMetadata().getNamespace().equals(namespace))
                .filter(one -> one.getMetadata().getLabels() != null
                        && service.equals(one.getMetadata().getLabels().get("kubernetes.io/service-name")))
                .toList();
    }

    private static List<Endpoint> endpoints(EndpointSlice slice) {
        return Objects.requireNonNullElse(slice.getEndpoints(), List.of());
    }

    /** Opens and closes ports, so that they are those of the Services. */
    private synchronized void look() {
        if (services == null) {
            return;
        }
        Set<String> wanted = new HashSet<>();
        for (Service service : services.getStore().list()) {
            String address = service.getSpec().getClusterIP();
            if (address == null || address.isEmpty() || address.equals("None")) {
                continue;
            }
            for (ServicePort port : service.getSpec().getPorts()) {
                String key = address + ":" + port.getPort();
                if ("TCP".equals(port.getProtocol()) && wanted.add(key) && !open.containsKey(key)) {
                    open(key, address, service, port);
                }
            }
        }
        open.entrySet().removeIf(one -> {
            if (wanted.contains(one.getKey())) {
                return false;
            }
            close(one.getValue());
            return true;
        });
    }

    private void open(String key, String address, Service service, ServicePort port) {
        try {
            ServerSocket socket = new ServerSocket();
            socket.setReuseAddress(true);
            socket.bind(new InetSocketAddress(InetAddress.getByName(address), port.getPort()), 512);
            open.put(key, socket);
            String namespace = service.getMetadata().getNamespace();
            String name = service.getMetadata().getName();
            String portName = port.getName();
            threads.newThread(() -> accept(socket, namespace, name, portName)).start();
        } catch (IOException e) {
            LOG.warn("port {} of Service {}", key, service.getMetadata().getName(), e);
        }
    }

    private void accept(ServerSocket socket, String namespace, String service, String port) {
        while (!socket.isClosed()) {
            try {
                Socket client = socket.accept();
                threads.newThread(() -> serve(client, namespace, service, port)).start();
            } catch (IOException e) {
                if (!socket.isClosed()) {
                    LOG.warn("Service {}", service, e);
                }
            }
        }
    }

    private void serve(Socket client, String namespace, String service, String port) {
        try (client;
                Socket pod = connect(namespace, service, port)) {
            client.setTcpNoDelay(true);
            pod.setTcpNoDelay(true);
            Thread back = threads.newThread(() -> copy(pod, client));
            back.start();
            copy(client, pod);
            back.join();
        } catch (IOException e) {
            LOG.debug("Service {}", service, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Connects to a pod of a Service; tries all, for one may have gone in between. */
    private Socket connect(String namespace, String service, String port) throws IOException {
        List<InetSocketAddress> addresses = new ArrayList<>();
        if (namespace.equals("default") && service.equals("kubernetes")) {
            addresses.add(apiServer);
        } else {
            List<InetSocketAddress> ending = new ArrayList<>();
            for (EndpointSlice slice : slices(namespace, service)) {
                int number = number(slice, port);
                for (Endpoint endpoint : number == 0 ? List.<Endpoint>of() : endpoints(slice)) {
                    InetSocketAddress address =
                            new InetSocketAddress(endpoint.getAddresses().get(0), number);
                    if (Boolean.TRUE.equals(endpoint.getConditions().getReady())) {
                        addresses.add(address);
                    } else if (Boolean.TRUE.equals(endpoint.getConditions().getServing())) {
                        ending.add(address);
                    }
                }
            }
            if (addresses.isEmpty()) {
                addresses.addAll(ending);
            }
        }
        IOException failure = new IOException("Service " + service + " has no pod that is ready");
        int first = addresses.isEmpty() ? 0 : ThreadLocalRandom.current().nextInt(addresses.size());
        for (int i = 0; i < addresses.size(); i++) {
            Socket socket = new Socket();
            try {
                socket.connect(addresses.get((first + i) % addresses.size()), CONNECT_MILLIS);
                return socket;
            } catch (IOException e) {
                socket.close();
                failure = e;
            }
        }
        throw failure;
    }

    private static int number(EndpointSlice slice, String port) {
        for (EndpointPort one : Objects.requireNonNullElse(slice.getPorts(), List.<EndpointPort>of())) {
            if (Objects.requireNonNullElse(one.getName(), "").equals(Objects.requireNonNullElse(port, ""))) {
                return one.getPort();
            }
        }
        return 0;
    }

    /** Passes on what comes until it ends, then ends the other side's direction too. */
    private static void copy(Socket from, Socket to) {
        byte[] bytes = new byte[1 << 16];
        try {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            for (int n = in.read(bytes); n >= 0; n = in.read(bytes)) {
                out.write(bytes, 0, n);
            }
            to.shutdownOutput();
        } catch (IOException e) {
            // One side was reset: so is the other.
            close(from);
            close(to);
        }
    }

    private static void close(AutoCloseable one) {
        try {
            one.close();
        } catch (Exception e) {
            LOG.debug("close", e);
        }
    }

    @Override
    public synchronized void close() {
        services.stop();
        slices.stop();
        open.values().forEach(ServiceProxy::close);
        open.clear();
    }
}
