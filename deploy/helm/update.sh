#!/usr/bin/env bash
# Writes the parts of the chart that come from the program to deploy/helm/nereid/files: definitions, rights, settings and runtimes.
# A test fails while they differ from it. Run it after a change of one of them.
set -euo pipefail
cd "$(dirname "$0")/../.."
./mvnw -B -ntp -q -Pquick -pl apps/nereid -am -Dtest=ChartFilesTest -Dnereid.chart.update=true -Dsurefire.failIfNoSpecifiedTests=false test
git status --short deploy/helm/nereid/files
