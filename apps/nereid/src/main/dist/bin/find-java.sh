# Sourced by the launchers: sets JAVA (the java command), JAVA_VERSION and JAVA_MAJOR, or stops with a message.
# NEREID_JAVA_HOME wins; then the runtime inside the distribution ("here" is its folder), JAVA_HOME, and the newest Java of 17 or
# later that lies where JDKs usually lie. With JAVAC=needed only JDKs count, as a JRE cannot build.

# The version of a java command: of the file "release" of its home, as to ask it takes as long as a small program.
java_version() {
    java_home=${1%/bin/java}
    if [ -L "$1" ] || [ ! -f "$java_home/release" ]; then
        java_home=$(dirname "$(dirname "$(readlink -f "$1" 2>/dev/null || echo "$1")")")
    fi
    java_found=
    if [ -f "$java_home/release" ]; then
        while IFS= read -r java_line; do
            case $java_line in JAVA_VERSION=*)
                java_found=${java_line#*\"}
                java_found=${java_found%%[!0-9.]*} ;;
            esac
        done <"$java_home/release"
    fi
    [ -n "$java_found" ] || java_found=$("$1" -version 2>&1 | sed -n 's/.*version "\([0-9][0-9.]*\).*/\1/p' | head -n 1)
    echo "$java_found"
}

# use_java <variable> <folder>: the Java that a variable names, or a message.
use_java() {
    if [ ! -x "$2/bin/java" ]; then
        echo "nereid: $1 is $2, but there is no bin/java in it; set it to a Java 17 or later, or unset it" >&2
        exit 1
    fi
    JAVA="$2/bin/java"
    JAVA_VERSION=$(java_version "$JAVA")
    JAVA_MAJOR=${JAVA_VERSION%%.*}
    if [ "${JAVA_MAJOR:-0}" -lt 17 ]; then
        echo "nereid: $1 is $2, a Java ${JAVA_MAJOR:-of unknown version}; Nereid needs Java 17 or later" >&2
        exit 1
    fi
}

JAVA=
JAVA_VERSION=0
JAVA_MAJOR=0
if [ -n "${NEREID_JAVA_HOME:-}" ]; then
    use_java NEREID_JAVA_HOME "$NEREID_JAVA_HOME"
elif [ -x "${here:-}/runtime/bin/java" ]; then
    JAVA=$here/runtime/bin/java
    JAVA_VERSION=$(java_version "$JAVA")
    JAVA_MAJOR=${JAVA_VERSION%%.*}
elif [ -n "${JAVA_HOME:-}" ]; then
    use_java JAVA_HOME "$JAVA_HOME"
else
    for candidate in "$(command -v java 2>/dev/null)" /usr/lib/jvm/*/bin/java /usr/java/*/bin/java /opt/*/bin/java \
        "$HOME"/.sdkman/candidates/java/*/bin/java "$HOME"/.jdks/*/bin/java \
        /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java; do
        [ -x "$candidate" ] || continue
        real=$(readlink -f "$candidate" 2>/dev/null || echo "$candidate")
        [ "${JAVAC:-}" != needed ] || [ -x "$(dirname "$real")/javac" ] || continue
        version=$(java_version "$real")
        major=${version%%.*}
        if [ "${major:-0}" -ge 17 ] && [ "$major" -gt "$JAVA_MAJOR" ]; then
            JAVA=$real
            JAVA_VERSION=$version
            JAVA_MAJOR=$major
        fi
    done
    if [ -z "$JAVA" ]; then
        echo "nereid: no Java 17 or later found; install one (for example: apt install openjdk-17-jre-headless) or set JAVA_HOME" >&2
        exit 1
    fi
fi
