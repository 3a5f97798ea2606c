// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0

// Starts Nereid in an image without a shell: becomes the JVM with the arguments that the release wrote into lib/launch, which are
// those of the distribution's script. NEREID_JAVA_OPTS adds JVM flags, which win; NEREID_CDS=off leaves the archive of classes out.

#define _GNU_SOURCE
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 4096 };

static char *arguments[MAX_ARGUMENTS + 1];
static int count;

static void stop(const char *what, const char *value) {
    fprintf(stderr, "nereid: %s %s: %s\n", what, value, strerror(errno));
    exit(1);
}

static void add(char *argument) {
    if (count == MAX_ARGUMENTS) {
        errno = E2BIG;
        stop("cannot start with so many arguments; the last was", argument);
    }
    arguments[count++] = argument;
}

static void prefer(const char *name, const char *value) { setenv(name, value, 0); }

static int starts_with(const char *text, const char *prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

static int is_collector(const char *flag) {
    size_t length = strlen(flag);
    return starts_with(flag, "-XX:+Use") && length > 10 && strcmp(flag + length - 2, "GC") == 0;
}

/* The JVM refuses the distribution's cache beside flags of this kind. */
static int of_archive(const char *flag) {
    return starts_with(flag, "-Xshare") || starts_with(flag, "-XX:SharedArchiveFile") || starts_with(flag, "-XX:ArchiveClassesAtExit") ||
           starts_with(flag, "-XX:AOT");
}

int main(int argc, char **argv) {
    static char home[4096];
    ssize_t length = readlink("/proc/self/exe", home, sizeof home - 1);
    if (length < 0) stop("cannot read", "/proc/self/exe");
    home[length] = 0;
    *strrchr(home, '/') = 0; // bin
    *strrchr(home, '/') = 0;

    char *name = basename(strdup(argv[0]));
    int tensorflow = strcmp(name, "tensorflow_model_server") == 0;
    if (tensorflow) {
        prefer("NEREID_HOST", "0.0.0.0");
        prefer("NEREID_PORT", "8500");
        prefer("NEREID_PORTS_AFTER_MODELS", "true");
    }
    // As in the distribution's script.
    setenv("ORT_DISABLE_TELEMETRY", "1", 1);
    prefer("TF_CPP_MIN_LOG_LEVEL", "2");
    const char *program = "serve";
    if (argc > 1 && !tensorflow && strcmp(argv[1], "operator") == 0) {
        program = "operator";
        prefer("MALLOC_ARENA_MAX", "2");
    } else if (argc > 1 && !tensorflow && strcmp(argv[1], "gateway") == 0) {
        program = "gateway";
    }

    // The user's flags, apart at blanks.
    static char *flags[256];
    int flag_count = 0, collector = 0, archive = 1;
    const char *given = getenv("NEREID_JAVA_OPTS");
    if (given != NULL) {
        char *rest = NULL;
        for (char *flag = strtok_r(strdup(given), " \t\n", &rest); flag != NULL; flag = strtok_r(NULL, " \t\n", &rest)) {
            if (flag_count == 256) {
                errno = E2BIG;
                stop("NEREID_JAVA_OPTS has more than 256 flags; the next is", flag);
            }
            collector |= is_collector(flag);
            archive &= !of_archive(flag);
            flags[flag_count++] = flag;
        }
    }
    const char *cds = getenv("NEREID_CDS");
    archive &= cds == NULL || strcmp(cds, "off") != 0;

    static char java[4200], path[4200];
    snprintf(java, sizeof java, "%s/runtime/bin/java", home);
    add(java);
    snprintf(path, sizeof path, "%s/lib/launch/%s", home, program);
    FILE *file = fopen(path, "r");
    if (file == NULL) stop("cannot read", path);
    char *line = NULL;
    size_t size = 0;
    while ((length = getline(&line, &size, file)) > 0) {
        if (line[length - 1] == '\n') line[length - 1] = 0;
        if (!archive && (starts_with(line, "-XX:SharedArchiveFile=") || starts_with(line, "-XX:AOTCache="))) continue;
        if (collector && is_collector(line)) continue;
        // The main class is the last line; the user's flags come before it.
        if (strcmp(line, "io.nereid.app.Main") == 0) {
            for (int i = 0; i < flag_count; i++) add(flags[i]);
        }
        add(strdup(line));
    }
    fclose(file);
    if (tensorflow) add("serve");
    for (int i = 1; i < argc; i++) add(argv[i]);
    execv(java, arguments);
    stop("cannot start", java);
}
