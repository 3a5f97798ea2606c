#!/usr/bin/env bash
# Makes the files of a release below target/release: distributions, an OCI image, a Maven repository, checksums, bill of materials, signatures.
#
#   build/release.sh VERSION [--built] [--parts PART,…]
#
# VERSION          the version of the poms (then this tree is built), or another one (then the last commit is, with that version)
# --built          takes what "./mvnw verify" or "package" has left in this tree instead of building it
# --parts          distribution, aarch64, image, image-tensorflow, image-all, wheel, debian, maven; all of these when absent. image-cuda
#                  is made when it is named: it fetches 742 MB
#
# NEREID_RELEASE_JDK   the JDK whose runtime goes into the distribution; the newest of /usr/lib/jvm and /opt when absent
# NEREID_SIGNING_KEY   a key that gpg knows; without it nothing is signed
#
# It needs a JDK, Python 3.9 or later and binutils, for the images apt-get, dpkg-deb and gcc, and for those with plugins their libraries: of
# ~/.m2/repository, else of NEREID_MAVEN_REPOSITORY or Maven Central.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

usage() {
    sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2
    echo "release: $1" >&2
    exit 2
}

version=
built=
parts=()
while [ $# -gt 0 ]; do
    case $1 in
        --built) built=1 ;;
        --parts)
            [ $# -ge 2 ] || usage "--parts needs names"
            parts=(--parts "$2")
            shift ;;
        -*) usage "there is no option '$1'" ;;
        *)
            [ -z "$version" ] || usage "one version is expected, not '$version' and '$1'"
            version=$1 ;;
    esac
    shift
done
[ -n "$version" ] || usage "VERSION is missing"
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+([-.][0-9A-Za-z.-]+)?$ ]] || usage "'$version' is not a version such as 1.2.3 or 1.2.3-rc1"

jdk=${NEREID_RELEASE_JDK:-}
if [ -z "$jdk" ]; then
    newest=0
    for candidate in /usr/lib/jvm/* /opt/* "${JAVA_HOME:-/}"; do
        [ -x "$candidate/bin/jlink" ] || continue
        major=$("$candidate/bin/javac" -version 2>&1 | sed -n 's/javac \([0-9]*\).*/\1/p')
        if [ "${major:-0}" -gt "$newest" ]; then
            newest=$major
            jdk=$(readlink -f "$candidate")
        fi
    done
fi
[ -x "$jdk/bin/jlink" ] || usage "no JDK with jlink is there ('$jdk'); NEREID_RELEASE_JDK names one"

current=$(sed -n '/<artifactId>nereid<\/artifactId>/{n;s/.*<version>\(.*\)<\/version>.*/\1/p;q}' "$root/pom.xml")
revision=$(git -C "$root" rev-parse HEAD 2>/dev/null || echo unknown)
tree=$root
if [ "$version" != "$current" ]; then
    [ -z "$built" ] || usage "--built: this tree has the version $current, not $version"
    tree=$root/target/release-tree
    rm -rf "$tree"
    mkdir -p "$tree"
    git -C "$root" archive HEAD | tar -x -C "$tree"
    find "$tree" -name pom.xml -exec sed -i "s|<version>$current</version>|<version>$version</version>|" {} +
    sed -i -E "s/^(version|appVersion): .*/\1: $version/" "$tree/deploy/helm/nereid/Chart.yaml"
    sed -i "s|$current|$version|" "$tree/examples/embedding/maven/pom.xml" "$tree/examples/embedding/gradle/build.gradle.kts"
    echo "release: builds the commit $revision as $version in $tree"
fi
if [ -z "$built" ]; then
    (cd "$tree" && ./mvnw -B -ntp -q -DskipTests -Dchecks.skip=true package)
fi
rm -rf "$root/target/release"
exec python3 "$root/build/release/main.py" --tree "$tree" --jdk "$jdk" --out "$root/target/release" --revision "$revision" "${parts[@]}"
