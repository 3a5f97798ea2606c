// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes.node;

import io.fabric8.kubernetes.api.model.Container;
import io.fabric8.kubernetes.api.model.PodSecurityContext;
import io.fabric8.kubernetes.api.model.PodSpec;
import io.fabric8.kubernetes.api.model.SecurityContext;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Writes the shell script that starts a container's program: it makes the file system of the container, gives up root's
 * rights, and becomes the program, so that signals reach it. Stateless.
 *
 * <p>The file system is an overlay over the machine's root, whose changes are kept in memory and end with the program; /tmp
 * and /dev are the container's own.
 */
final class ContainerScript {
    private static final List<String> DEVICES = List.of("null", "zero", "full", "random", "urandom", "tty");
    private static final String PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

    private ContainerScript() {}

    /** A folder or file of the node at a path of the container. */
    record Mount(Path from, String at, boolean readOnly) {}

    /**
     * What the script needs beside the container's specification.
     *
     * @param folder the folder of this start, empty; it has the file {@code termination-log} afterwards
     * @param resolv the text of /etc/resolv.conf
     */
    record Place(Path folder, String hostname, String resolv, List<Mount> mounts) {}

    static String write(
            PodSpec pod,
            Container container,
            ContainerImage image,
            Map<String, String> environment,
            List<String> command,
            Place place) {
        StringBuilder script = new StringBuilder();
        String root = place.folder().resolve("fs/root").toString();
        String fs = place.folder().resolve("fs").toString();
        line(script, "set -eu");
        line(script, "mkdir -p " + q(fs));
        line(script, "mount -t tmpfs tmpfs " + q(fs));
        line(script, "mkdir " + q(fs + "/upper") + " " + q(fs + "/work") + " " + q(root));
        line(
                script,
                "mount -t overlay overlay -o " + q("lowerdir=/,upperdir=" + fs + "/upper,workdir=" + fs + "/work") + " "
                        + q(root));
        line(script, "mount --rbind /proc " + q(root + "/proc"));
        line(script, "mount -t tmpfs -o mode=1777 tmpfs " + q(root + "/tmp"));
        line(script, "mount -t tmpfs -o mode=755 tmpfs " + q(root + "/dev"));
        for (String device : DEVICES) {
            String at = root + "/dev/" + device;
            line(script, "touch " + q(at) + " && mount --bind /dev/" + device + " " + q(at));
        }
        line(script, "ln -s /proc/self/fd " + q(root + "/dev/fd"));
        line(script, "ln -s /proc/self/fd/1 " + q(root + "/dev/stdout"));
        line(script, "ln -s /proc/self/fd/2 " + q(root + "/dev/stderr"));
        line(script, "mkdir -m 1777 " + q(root + "/dev/shm"));
        line(script, "rm -f " + q(root + "/etc/resolv.conf") + " " + q(root + "/etc/hostname"));
        line(script, "printf %s " + q(place.resolv()) + " >" + q(root + "/etc/resolv.conf"));
        line(script, "printf '%s\\n' " + q(place.hostname()) + " >" + q(root + "/etc/hostname"));
        for (Map.Entry<Path, String> mount : new TreeMap<>(image.mounts()).entrySet()) {
            mount(script, root, new Mount(mount.getKey(), mount.getValue(), true));
        }
        mount(
                script,
                root,
                new Mount(
                        place.folder().resolve("termination-log"),
                        container.getTerminationMessagePath() == null
                                ? "/dev/termination-log"
                                : container.getTerminationMessagePath(),
                        false));
        for (Mount mount : place.mounts()) {
            mount(script, root, mount);
        }
        SecurityContext security = container.getSecurityContext();
        if (security != null && Boolean.TRUE.equals(security.getReadOnlyRootFilesystem())) {
            line(script, "mount -o remount,ro " + q(root));
        }
        script.append("exec chroot ").append(q(root)).append(' ').append(rights(pod, security, image));
        script.append(" env -i");
        if (container.getWorkingDir() != null) {
            script.append(" -C ").append(q(container.getWorkingDir()));
        }
        script.append(' ').append(q("PATH=" + PATH)).append(' ').append(q("HOSTNAME=" + place.hostname()));
        for (Map<String, String> variables : List.of(image.environment(), environment)) {
            variables.forEach((name, value) -> script.append(' ').append(q(name + "=" + value)));
        }
        return script.append(' ').append(Commands.quoted(command)).append('\n').toString();
    }

    /** Links of the path, such as /var/run, are followed inside of the container's root. */
    private static void mount(StringBuilder script, String root, Mount mount) {
        String from = q(mount.from().toString());
        line(script, "at=" + q(root) + "$(chroot " + q(root) + " readlink -m " + q(mount.at()) + ")");
        line(
                script,
                "if [ -d " + from
                        + " ]; then mkdir -p \"$at\"; else mkdir -p \"$(dirname \"$at\")\"; touch \"$at\"; fi");
        line(script, "mount --rbind " + from + " \"$at\"");
        if (mount.readOnly()) {
            line(script, "mount -o remount,bind,ro \"$at\"");
        }
    }

    /** The command that gives up the rights which the container must not have. */
    private static String rights(PodSpec pod, @Nullable SecurityContext security, ContainerImage image) {
        long user = user(pod, security, image);
        PodSecurityContext all = pod.getSecurityContext();
        Long group = security != null && security.getRunAsGroup() != null
                ? security.getRunAsGroup()
                : all == null ? null : all.getRunAsGroup();
        StringBuilder command =
                new StringBuilder("setpriv --reuid " + user + " --regid " + (group == null ? 0 : group));
        if (all != null && all.getFsGroup() != null) {
            command.append(" --groups ").append(all.getFsGroup());
        } else {
            command.append(" --clear-groups");
        }
        if (security != null && Boolean.FALSE.equals(security.getAllowPrivilegeEscalation())) {
            command.append(" --no-new-privs");
        }
        if (security != null
                && security.getCapabilities() != null
                && security.getCapabilities().getDrop() != null
                && security.getCapabilities().getDrop().contains("ALL")) {
            command.append(" --inh-caps=-all --bounding-set=-all");
        }
        return command.toString();
    }

    /** The user id that a container's program has. */
    static long user(PodSpec pod, @Nullable SecurityContext security, ContainerImage image) {
        if (security != null && security.getRunAsUser() != null) {
            return security.getRunAsUser();
        }
        PodSecurityContext all = pod.getSecurityContext();
        return all != null && all.getRunAsUser() != null ? all.getRunAsUser() : image.user();
    }

    private static void line(StringBuilder script, String line) {
        script.append(line).append('\n');
    }

    private static String q(String text) {
        return Commands.quoted(text);
    }
}
