// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.request;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.spi.StorageUri;
import java.io.IOException;
import java.net.Inet4Address;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.UnknownHostException;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Which storage URIs a request may name, and which hosts and addresses its connections may reach: the protection against
 * server-side request forgery by clients of an API.
 *
 * <ul>
 *   <li>Link-local, multicast and unspecified addresses and those of cloud metadata services are refused, whatever the
 *       host is called. Loopback addresses are refused unless this is permitted.
 *   <li>With patterns, the URI must match one of them. Connections, including those of redirects and token services,
 *       may then reach the hosts of http and https patterns and the public hosts of the URI's own kind of store.
 *   <li>A pattern with the exact name of a host permits every address of that host.
 *   <li>The hosts of endpoints in the server's environment are permitted: the operator has written them.
 * </ul>
 *
 * Immutable. Resolving a host asks the system's resolver, so it may block.
 */
public final class StorageAccess {
    /** Permits everything: for URIs that the operator writes. */
    public static final StorageAccess UNRESTRICTED = new StorageAccess(List.of(), true, Set.of(), true);

    private static final Set<String> METADATA_NAMES = Set.of(
            "metadata",
            "metadata.google.internal",
            "metadata.goog",
            "instance-data",
            "instance-data.ec2.internal",
            "metadata.azure.internal",
            "metadata.tencentyun.com");
    /** Addresses of metadata services that are not link-local: Alibaba Cloud, Oracle Cloud, Azure. */
    private static final Set<String> METADATA_ADDRESSES = Set.of("100.100.100.200", "192.0.0.192", "168.63.129.16");

    /** The settings that name an endpoint, a proxy aside. */
    private static final List<String> ENDPOINTS = List.of(
            "AWS_ENDPOINT_URL",
            "AWS_ENDPOINT_URL_S3",
            "AWS_ENDPOINT_URL_STS",
            "S3_ENDPOINT",
            "STORAGE_EMULATOR_HOST",
            "AZURE_STORAGE_BLOB_ENDPOINT",
            "AZURE_STORAGE_FILE_ENDPOINT",
            "AZURE_AUTHORITY_HOST",
            "HF_ENDPOINT",
            "HDFS_NAMENODE");
    /** The settings that name a service of the machine that gives credentials. */
    private static final List<String> MACHINE_ENDPOINTS = List.of(
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "AWS_EC2_METADATA_SERVICE_ENDPOINT",
            "IDENTITY_ENDPOINT",
            "AZURE_POD_IDENTITY_AUTHORITY_HOST",
            "GCE_METADATA_HOST");

    private static final Set<String> MACHINE_HOSTS =
            Set.of("169.254.169.254", "169.254.170.2", "169.254.170.23", "fd00:ec2::254", "fd00:ec2::23");
    /** Schemes other than http and https whose URIs have the name of a machine as their host. */
    private static final Set<String> STORES_BY_HOST = Set.of("oci", "hdfs", "webhdfs");

    private static final Map<String, List<String>> PUBLIC_HOSTS = Map.of(
            "s3", List.of("*.amazonaws.com", "*.amazonaws.com.cn"),
            "gs", List.of("*.googleapis.com"),
            "hf", List.of("huggingface.co", "*.huggingface.co", "*.hf.co"),
            "oci", List.of("registry-1.docker.io", "auth.docker.io"),
            "https", List.of("login.microsoftonline.com"));

    private final List<Pattern> patterns;
    private final boolean loopback;
    private final Set<String> trusted;
    private final boolean unrestricted;

    private StorageAccess(List<Pattern> patterns, boolean loopback, Set<String> trusted, boolean unrestricted) {
        this.patterns = List.copyOf(patterns);
        this.loopback = loopback;
        this.trusted = Set.copyOf(trusted);
        this.unrestricted = unrestricted;
    }

    /**
     * The access of requests that come through an API.
     *
     * @param patterns {@code scheme://host[:port][/prefix]} or {@code *} for every URI; empty permits every URI. A host
     *     that begins with {@code *.} stands for all names below it
     * @param loopback whether addresses of this machine may be reached
     * @param environment the server's environment, whose endpoints are permitted
     * @throws ServingException INVALID_ARGUMENT for a pattern that is not valid
     */
    public static StorageAccess of(List<String> patterns, boolean loopback, Map<String, String> environment) {
        List<Pattern> parsed = new ArrayList<>();
        for (String pattern : patterns) {
            parsed.add(Pattern.of(pattern));
        }
        Set<String> trusted = new HashSet<>();
        for (String name : ENDPOINTS) {
            String host = hostOf(environment.getOrDefault(name, ""));
            if (!host.isEmpty()) {
                trusted.add(host);
            }
        }
        return new StorageAccess(parsed, loopback, trusted, false);
    }

    /**
     * A pattern of URIs. Immutable.
     *
     * @param scheme in lower case, or {@code *}
     * @param host in lower case; {@code *} for all
     * @param port of http and https the default one if the text has none; else -1 for all
     * @param path the prefix that a path must have, without a slash at the end
     */
    private record Pattern(String scheme, String host, int port, String path) {
        static Pattern of(String text) {
            if (text.equals("*")) {
                return new Pattern("*", "*", -1, "");
            }
            int end = text.indexOf("://");
            String scheme = end < 0 ? "" : text.substring(0, end).toLowerCase(Locale.ROOT);
            String rest = end < 0 ? "" : text.substring(end + 3);
            int slash = rest.indexOf('/');
            String authority = slash < 0 ? rest : rest.substring(0, slash);
            String path = slash < 0 ? "" : rest.substring(slash);
            path = path.endsWith("/") ? path.substring(0, path.length() - 1) : path;
            int colon = authority.lastIndexOf(':');
            int port = -1;
            String host = authority;
            if (colon > authority.lastIndexOf(']')) {
                try {
                    port = Integer.parseInt(authority.substring(colon + 1));
                } catch (NumberFormatException e) {
                    port = -2;
                }
                host = authority.substring(0, colon);
            }
            if (port == -1 && scheme.startsWith("http")) {
                port = scheme.equals("https") ? 443 : 80;
            }
            boolean file = scheme.equals("file");
            if (!scheme.matches("[a-z][a-z0-9+.-]*")
                    || port < -1
                    || port > 65535
                    || file != host.isEmpty()
                    || text.contains("?")
                    || text.contains("#")
                    || host.contains("@")
                    || host.indexOf('*', 1) > 0
                    || host.startsWith("*") && host.length() > 1 && host.charAt(1) != '.') {
                throw ServingException.invalidArgument(
                        "storage pattern '" + text
                                + "' is not valid (expected: scheme://host[:port][/prefix], such as s3://models/ or"
                                + " https://models.example.com/, or *)",
                        file ? "write a directory as file:///models/" : null);
            }
            return new Pattern(scheme, bare(host.toLowerCase(Locale.ROOT)), port, path);
        }

        boolean matches(String otherScheme, String otherHost, int otherPort, String otherPath) {
            return (scheme.equals("*") || scheme.equals(otherScheme))
                    && hostMatches(host, otherHost)
                    && (port < 0 || port == otherPort)
                    && (path.isEmpty() || otherPath.equals(path) || otherPath.startsWith(path + "/"));
        }
    }

    private static boolean hostMatches(String pattern, String host) {
        return pattern.equals("*")
                || pattern.equals(host)
                || pattern.startsWith("*.") && host.endsWith(pattern.substring(1));
    }

    /** A host without the brackets of an IPv6 address and without a dot at the end. */
    private static String bare(String host) {
        String inner = host.startsWith("[") && host.endsWith("]") ? host.substring(1, host.length() - 1) : host;
        return inner.endsWith(".") ? inner.substring(0, inner.length() - 1) : inner;
    }

    private static String hostOf(String endpoint) {
        if (endpoint.isEmpty()) {
            return "";
        }
        try {
            String host = new URI(endpoint.contains("://") ? endpoint : "http://" + endpoint).getHost();
            return host == null ? "" : bare(host.toLowerCase(Locale.ROOT));
        } catch (URISyntaxException e) {
            return "";
        }
    }

    /**
     * Checks the URI of a request against the patterns.
     *
     * @throws ServingException PERMISSION_DENIED when no pattern matches
     */
    public void check(String uri) {
        if (unrestricted || patterns.isEmpty()) {
            return;
        }
        String scheme = uri.startsWith("/") ? "file" : StorageUri.scheme(uri);
        scheme = scheme.startsWith("oci+") ? "oci" : scheme;
        String rest = uri.startsWith("/")
                ? uri
                : uri.substring(Math.min(uri.length(), scheme(uri).length() + 3));
        String host = "";
        int port = -1;
        String path = rest;
        if (!scheme.equals("file")) {
            int slash = rest.indexOf('/');
            host = slash < 0 ? rest : rest.substring(0, slash);
            path = slash < 0 ? "" : rest.substring(slash);
            if (scheme.startsWith("http")) {
                URI parsed = StorageUris.parse(uri);
                host = String.valueOf(parsed.getHost());
                port = port(parsed);
                path = parsed.normalize().getPath();
            } else if (host.matches(".*:[0-9]+")) {
                port = Integer.parseInt(host.substring(host.lastIndexOf(':') + 1));
                host = host.substring(0, host.lastIndexOf(':'));
            }
        }
        checkParts(uri, scheme, bare(host.toLowerCase(Locale.ROOT)), port, path);
    }

    private static String scheme(String uri) {
        return uri.substring(0, Math.max(0, uri.indexOf("://")));
    }

    private void checkParts(String uri, String scheme, String host, int port, String path) {
        boolean climbs = List.of(path.split("/", -1)).contains("..");
        for (Pattern pattern : patterns) {
            if (!(climbs && !pattern.path.isEmpty()) && pattern.matches(scheme, host, port, path)) {
                return;
            }
        }
        throw ServingException.of(
                ErrorCode.PERMISSION_DENIED,
                "storage URI '" + StorageUri.shown(uri) + "' is not permitted (allowed: " + described() + ")",
                "the operator can allow it with --storage-allow");
    }

    /**
     * Checks a local path, after symbolic links, against the patterns.
     *
     * @throws ServingException PERMISSION_DENIED when it lies outside of the permitted directories
     */
    public void checkPath(String uri, Path path) {
        if (unrestricted || patterns.isEmpty() || !(uri.startsWith("/") || uri.startsWith("file:"))) {
            return;
        }
        try {
            checkParts(uri, "file", "", -1, path.toRealPath().toString());
        } catch (IOException | InvalidPathException e) {
            // A path that does not exist is reported by the caller.
        }
    }

    private String described() {
        List<String> all = new ArrayList<>();
        for (Pattern p : patterns) {
            all.add(p.scheme.equals("*") ? "*" : p.scheme + "://" + p.host + (p.port < 0 ? "" : ":" + p.port) + p.path);
        }
        return String.join(", ", all);
    }

    private static int port(URI uri) {
        return uri.getPort() >= 0 ? uri.getPort() : "https".equalsIgnoreCase(uri.getScheme()) ? 443 : 80;
    }

    /**
     * The connections of one request.
     *
     * @param uri the storage URI of the request
     */
    public Connections connections(String uri) {
        String scheme = StorageUri.scheme(uri);
        List<String> own =
                new ArrayList<>(PUBLIC_HOSTS.getOrDefault(scheme.startsWith("oci") ? "oci" : scheme, List.of()));
        if (scheme.startsWith("oci") || scheme.endsWith("hdfs") || scheme.startsWith("http")) {
            String host = hostOf(uri.substring(scheme.length() + 3).replaceAll("[?#].*", ""));
            // Azure lists a container by requests that are not below the prefix of the URI.
            if (!host.isEmpty() && (!scheme.startsWith("http") || StorageUris.kind(uri) != StorageUris.Kind.HTTP)) {
                own.add(host);
            }
        }
        return new Connections(this, List.copyOf(own), Set.of());
    }

    /** Which hosts and addresses the connections of one request may reach. Immutable. */
    public static final class Connections {
        /** Permits everything. */
        public static final Connections UNRESTRICTED = StorageAccess.UNRESTRICTED.connections("");

        private final StorageAccess access;
        private final List<String> own;
        private final Set<String> machine;

        private Connections(StorageAccess access, List<String> own, Set<String> machine) {
            this.access = access;
            this.own = own;
            this.machine = machine;
        }

        /** As this, and the services of the machine that give credentials, where the environment or the cloud has them. */
        public Connections withMachineServices(Map<String, String> environment) {
            Set<String> hosts = new HashSet<>(MACHINE_HOSTS);
            for (String name : MACHINE_ENDPOINTS) {
                hosts.add(hostOf(environment.getOrDefault(name, "")));
            }
            return new Connections(access, own, hosts);
        }

        /** Whether a pattern or the server's environment names exactly this host. */
        public boolean names(URI target) {
            String host = host(target);
            return access.trusted.contains(host)
                    || machine.contains(host)
                    || access.patterns.stream()
                            .anyMatch(p -> p.host.equals(host)
                                    && (p.port < 0 || p.port == port(target))
                                    && (p.scheme.equalsIgnoreCase(target.getScheme())
                                            || STORES_BY_HOST.contains(p.scheme)));
        }

        /**
         * Checks a request's target before a connection is opened or used again.
         *
         * @throws ServingException PERMISSION_DENIED
         */
        public void check(URI target) {
            if (access.unrestricted || names(target)) {
                return;
            }
            String host = host(target);
            boolean listed = access.patterns.isEmpty()
                    || own.stream().anyMatch(pattern -> hostMatches(pattern, host))
                    || access.patterns.stream()
                            .anyMatch(p -> p.matches(
                                    String.valueOf(target.getScheme()).toLowerCase(Locale.ROOT),
                                    host,
                                    port(target),
                                    String.valueOf(target.normalize().getPath())));
            if (!listed) {
                throw refused(target, "no pattern of --storage-allow matches it");
            }
            if (METADATA_NAMES.contains(host)) {
                throw refused(target, "it is a metadata service");
            }
        }

        /**
         * Whether a connection to this address may be used for the target, which {@link #check} has accepted.
         *
         * @return the reason why not, or null
         */
        public @Nullable String refusal(URI target, InetAddress address) {
            return access.unrestricted || names(target) ? null : reason(address, access.loopback);
        }

        /**
         * Resolves the target's host. The connection is opened to one of these addresses, so no second lookup can give
         * another answer.
         *
         * @return at least one address
         * @throws ServingException PERMISSION_DENIED when an address may not be reached
         */
        public List<InetAddress> resolve(URI target) throws UnknownHostException {
            List<InetAddress> permitted = new ArrayList<>();
            for (InetAddress address : InetAddress.getAllByName(host(target))) {
                String reason = refusal(target, address);
                if (reason != null) {
                    throw refused(target, "its address " + address.getHostAddress() + " is " + reason);
                }
                permitted.add(address);
            }
            return permitted;
        }

        /** {@link #check} and {@link #resolve} for providers that open connections themselves. */
        public void checkHost(URI target) {
            if (access.unrestricted) {
                return;
            }
            check(target);
            try {
                resolve(target);
            } catch (UnknownHostException e) {
                // The connection fails with the same reason, or a proxy knows the name.
            }
        }

        /** The exception for a target that may not be reached. */
        public static ServingException refused(URI target, String why) {
            return ServingException.of(
                    ErrorCode.PERMISSION_DENIED,
                    "a storage request to " + target.getScheme() + "://" + target.getHost() + " is not permitted: "
                            + why,
                    "the operator can allow it with --storage-allow=" + target.getScheme() + "://" + target.getHost()
                            + "/");
        }

        private static String host(URI target) {
            return bare(String.valueOf(target.getHost()).toLowerCase(Locale.ROOT));
        }
    }

    /** Why an address is refused, or null. */
    private static @Nullable String reason(InetAddress address, boolean loopback) {
        byte[] bytes = address.getAddress();
        if (METADATA_ADDRESSES.contains(address.getHostAddress())) {
            return "that of a metadata service";
        }
        if (address.isLinkLocalAddress()) {
            return "link-local, as those of metadata services";
        }
        if (address.isMulticastAddress() || address instanceof Inet4Address && (bytes[0] & 0xff) >= 240) {
            return "a multicast or reserved address";
        }
        if (address.isAnyLocalAddress() || address instanceof Inet4Address && bytes[0] == 0) {
            return "the unspecified address";
        }
        if (address.isLoopbackAddress()) {
            return loopback ? null : "that of this machine";
        }
        if (address instanceof Inet6Address) {
            if (bytes[0] == (byte) 0xfd && bytes[1] == 0 && bytes[2] == 0x0e && bytes[3] == (byte) 0xc2) {
                return "that of a metadata service";
            }
            InetAddress inner = embedded(bytes);
            return inner == null ? null : reason(inner, loopback);
        }
        return null;
    }

    /** The IPv4 address in an IPv6 address of NAT64, 6to4 or the deprecated compatible form, or null. */
    private static @Nullable InetAddress embedded(byte[] b) {
        boolean nat64 = b[0] == 0 && b[1] == 0x64 && b[2] == (byte) 0xff && b[3] == (byte) 0x9b;
        boolean compatible = true;
        for (int i = 0; i < 12; i++) {
            compatible &= b[i] == 0;
        }
        boolean sixToFour = b[0] == 0x20 && b[1] == 0x02;
        if (!nat64 && !compatible && !sixToFour) {
            return null;
        }
        int from = sixToFour ? 2 : 12;
        try {
            return InetAddress.getByAddress(new byte[] {b[from], b[from + 1], b[from + 2], b[from + 3]});
        } catch (UnknownHostException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public String toString() {
        return unrestricted
                ? "StorageAccess[unrestricted]"
                : "StorageAccess[" + (patterns.isEmpty() ? "*" : described()) + (loopback ? ", loopback" : "") + "]";
    }
}
