#!/usr/bin/env bash
# Writes the parts of the chart that come from the program to deploy/helm/nereid/files: definitions, rights, settings and runtimes,
# with the alerts of deploy/monitoring; to values.schema.json the options of nereid serve, to docs/HELM-SERVER.md the table of values.
# A test fails while they differ from it. Run it after a change of one of them.
set -euo pipefail
cd "$(dirname "$0")/../.."
./mvnw -B -ntp -q -Pquick -pl apps/nereid -am -Dtest=ChartFilesTest -Dnereid.chart.update=true -Dsurefire.failIfNoSpecifiedTests=false test
git status --short deploy/helm/nereid/files deploy/helm/nereid/values.schema.json docs/HELM-SERVER.md
