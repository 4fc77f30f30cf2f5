#!/bin/bash
# Makes echarts.min.js from the versions pinned in package-lock.json. Needs Node.js and npm; only this step does.
#   build.sh          writes echarts.min.js and the licence texts that belong to it
#   build.sh --check  builds apart and fails if the checked-in files differ
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp package.json package-lock.json .npmrc entry.js "$work"
(cd "$work" && npm ci --silent --no-audit --no-fund)

version=$(node -p "require('$work/node_modules/echarts/package.json').version")
banner="/*! Apache ECharts $version (Apache-2.0), with zrender (BSD-3-Clause) and tslib (0BSD); licences beside this file */"
(cd "$work" && npx esbuild entry.js --bundle --minify --format=iife --global-name=echarts --target=es2020 \
    --charset=utf8 --legal-comments=none --banner:js="$banner" --log-level=warning --outfile=echarts.min.js)
{
    for package in echarts zrender tslib; do
        printf '==== %s %s ====\n\n' "$package" "$(node -p "require('$work/node_modules/$package/package.json').version")"
        for text in LICENSE LICENSE.txt NOTICE; do
            if [ -f "$work/node_modules/$package/$text" ]; then cat "$work/node_modules/$package/$text"; echo; fi
        done
    done
} > "$work/LICENSES.txt"

for file in echarts.min.js LICENSES.txt; do
    if [ "${1:-}" = --check ]; then
        cmp "$work/$file" "$file" || { echo "$file differs from what package-lock.json gives: run $0" >&2; exit 1; }
    else
        cp "$work/$file" "$file"
    fi
done
