# Sourced by the launchers: sets JAVA (the java command) and JAVA_MAJOR, or stops with a message.
# NEREID_JAVA_HOME wins; then the runtime inside the distribution ("here" is its folder), JAVA_HOME, and the newest Java of 17 or
# later that lies where JDKs usually lie. With JAVAC=needed only JDKs count, as a JRE cannot build.

java_major() {
    "$1" -version 2>&1 | sed -n 's/.*version "\([0-9][0-9]*\).*/\1/p' | head -n 1
}

# use_java <variable> <folder>: the Java that a variable names, or a message.
use_java() {
    if [ ! -x "$2/bin/java" ]; then
        echo "nereid: $1 is $2, but there is no bin/java in it; set it to a Java 17 or later, or unset it" >&2
        exit 1
    fi
    JAVA="$2/bin/java"
    JAVA_MAJOR=$(java_major "$JAVA")
    if [ "${JAVA_MAJOR:-0}" -lt 17 ]; then
        echo "nereid: $1 is $2, a Java ${JAVA_MAJOR:-of unknown version}; Nereid needs Java 17 or later" >&2
        exit 1
    fi
}

JAVA=
JAVA_MAJOR=0
if [ -n "${NEREID_JAVA_HOME:-}" ]; then
    use_java NEREID_JAVA_HOME "$NEREID_JAVA_HOME"
elif [ -x "${here:-}/runtime/bin/java" ]; then
    JAVA=$here/runtime/bin/java
    # Written when the runtime was made; to ask it would take as long as a small program.
    JAVA_MAJOR=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$here/runtime/release")
elif [ -n "${JAVA_HOME:-}" ]; then
    use_java JAVA_HOME "$JAVA_HOME"
else
    for candidate in "$(command -v java 2>/dev/null)" /usr/lib/jvm/*/bin/java /usr/java/*/bin/java /opt/*/bin/java \
        "$HOME"/.sdkman/candidates/java/*/bin/java "$HOME"/.jdks/*/bin/java \
        /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java; do
        [ -x "$candidate" ] || continue
        real=$(readlink -f "$candidate" 2>/dev/null || echo "$candidate")
        [ "${JAVAC:-}" != needed ] || [ -x "$(dirname "$real")/javac" ] || continue
        major=$(java_major "$real")
        if [ "${major:-0}" -ge 17 ] && [ "$major" -gt "$JAVA_MAJOR" ]; then
            JAVA=$real
            JAVA_MAJOR=$major
        fi
    done
    if [ -z "$JAVA" ]; then
        echo "nereid: no Java 17 or later found; install one (for example: apt install openjdk-17-jre-headless) or set JAVA_HOME" >&2
        exit 1
    fi
fi
