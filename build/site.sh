#!/usr/bin/env bash
# Makes a site of docs, with a search, in target/site. A link to a document, a file or a heading that is not there ends it with 1.
#
#   build/site.sh            NEREID_SOURCES=URL: where links to files of the sources lead; without it they are only text
set -euo pipefail
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
venv=$root/target/site-tools
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
"$venv/bin/pip" install -q --disable-pip-version-check mkdocs==1.6.1
# Not --quiet: it would not count the warnings that --strict ends with.
"$venv/bin/mkdocs" build --strict --clean -f "$root/build/site/mkdocs.yml" 2>&1 | { grep -v '^INFO' || true; }
echo "the site is in $root/target/site, $(find "$root/target/site" -name '*.html' | wc -l) pages"
