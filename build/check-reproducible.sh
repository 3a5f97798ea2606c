#!/bin/sh
# Builds twice from clean copies of the last commit and compares the checksums of what comes out.
# Usage: build/check-reproducible.sh              (both builds skip tests and checks; about two minutes)
#        build/check-reproducible.sh --release    (and makes the files of a release twice; about four minutes more)
set -eu
case ${1:-} in
    '') release= ;;
    --release) release=1 ;;
    *) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

once() {
    # Different folders and different time zones: neither may leave a trace in the result.
    git clone -q "$root" "$work/$1"
    (cd "$work/$1" && TZ=$2 ./mvnw -B -ntp -q -DskipTests -Dchecks.skip=true package)
    (cd "$work/$1" && find . -path '*/target/*' \( -path '*/target/nereid-*.jar' -o -path '*/target/nereid-*.tar.gz' -o -name 'sbom.cdx.json' -o -name 'published-pom.xml' \) \
        -not -path '*/dist/*' -type f -exec sha512sum {} + | sort -k 2) >"$work/$1.sums"
    [ -z "$release" ] || (cd "$work/$1" && TZ=$2 build/release.sh "$version" --built)
}
version=$(git -C "$root" show HEAD:pom.xml | sed -n '/<artifactId>nereid<\/artifactId>/{n;s/.*<version>\(.*\)<\/version>.*/\1/p;q}')

echo "first build"
once one UTC
echo "second build"
once another-folder Pacific/Kiritimati
if ! [ -s "$work/one.sums" ]; then
    echo "nothing was built" >&2
    exit 1
fi
if diff "$work/one.sums" "$work/another-folder.sums" >"$work/diff"; then
    echo "the same bytes twice: $(wc -l <"$work/one.sums") files"
else
    echo "these files differ between two builds of the same commit:" >&2
    sed -n 's/^< [0-9a-f]*  /  /p' "$work/diff" >&2
    exit 1
fi
[ -z "$release" ] || python3 "$root/build/release/compare.py" "$work/one/target/release" "$work/another-folder/target/release"
