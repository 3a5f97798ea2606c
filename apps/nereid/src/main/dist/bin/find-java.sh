# Sourced by the launchers: sets JAVA (the java command) and JAVA_MAJOR, or stops with a message.
# JAVA_HOME wins; else the newest JDK of 17 or later that lies where JDKs usually lie.

java_major() {
    "$1" -version 2>&1 | sed -n 's/.*version "\([0-9][0-9]*\).*/\1/p' | head -n 1
}

JAVA=
JAVA_MAJOR=0
if [ -n "${JAVA_HOME:-}" ]; then
    if [ ! -x "$JAVA_HOME/bin/java" ]; then
        echo "nereid: JAVA_HOME is $JAVA_HOME, but there is no bin/java in it; set it to a JDK 17 or later, or unset it" >&2
        exit 1
    fi
    JAVA="$JAVA_HOME/bin/java"
    JAVA_MAJOR=$(java_major "$JAVA")
    if [ "${JAVA_MAJOR:-0}" -lt 17 ]; then
        echo "nereid: JAVA_HOME is $JAVA_HOME, a Java ${JAVA_MAJOR:-of unknown version}; Nereid needs a JDK 17 or later" >&2
        exit 1
    fi
else
    for candidate in "$(command -v java 2>/dev/null)" /usr/lib/jvm/*/bin/java /usr/java/*/bin/java /opt/*/bin/java \
        "$HOME"/.sdkman/candidates/java/*/bin/java "$HOME"/.jdks/*/bin/java \
        /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java; do
        [ -x "$candidate" ] || continue
        # A JRE cannot build; prefer JDKs, which have javac beside java.
        real=$(readlink -f "$candidate" 2>/dev/null || echo "$candidate")
        [ -x "$(dirname "$real")/javac" ] || continue
        major=$(java_major "$real")
        if [ "${major:-0}" -ge 17 ] && [ "$major" -gt "$JAVA_MAJOR" ]; then
            JAVA=$real
            JAVA_MAJOR=$major
        fi
    done
    if [ -z "$JAVA" ]; then
        echo "nereid: no JDK 17 or later found; install one (for example: apt install openjdk-17-jdk-headless) or set JAVA_HOME" >&2
        exit 1
    fi
fi
