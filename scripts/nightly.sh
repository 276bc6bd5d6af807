#!/usr/bin/env bash
# Runs the long searches one after the other, and prints a line for each at the end. As root; fails if one fails.
#
#   nightly.sh MINUTES   for each search by random seeds
set -uo pipefail
cd "$(dirname "$0")/.."
minutes=$1
mkdir -p out/nightly

failed=0 summary=()
searches=("soak MINUTES=$minutes" "model MINUTES=$minutes" "backup-model MINUTES=$minutes")
for words in "${searches[@]}" field power-cut netem fc; do
    log=out/nightly/${words%% *}.log
    begin=$SECONDS
    # shellcheck disable=SC2086
    if make $words >"$log" 2>&1; then result=passed; else result=FAILED failed=1; fi
    summary+=("$result  make $words  $(((SECONDS - begin) / 60)) min  $log")
    echo "${summary[-1]}"
done
printf '\n%s\n' "All of this night:" "${summary[@]}"
exit $failed
