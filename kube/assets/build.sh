#!/usr/bin/env bash
# Builds the programs of Kubernetes that tests start, once for each content of this folder and each
# version of Go, into the cache of the user. `--folder` only prints where they are, built or not;
# `--check` only says whether the Go that is here builds them.
set -euo pipefail
cd "$(dirname "$0")"

if ! command -v go > /dev/null; then
  echo "missing: Go (https://go.dev), $(awk '$1 == "go" {print $2}' go.mod) or newer" >&2; exit 1
fi
# Neither another toolchain nor settings of the user: the key below says what is built.
export GOTOOLCHAIN=local GOWORK=off GOFLAGS= CGO_ENABLED=0
if [ "${1:-}" = --check ]; then go list -m > /dev/null; exit; fi
key=$({ cat go.mod go.sum main.go; go env GOVERSION GOOS GOARCH; } | sha256sum | cut -c 1-16)
all="${XDG_CACHE_HOME:-$HOME/.cache}/elastane/kube-assets"
folder="$all/$key"
if [ "${1:-}" = --folder ]; then echo "$folder"; exit; fi
if [ -e "$folder" ]; then echo "$folder"; exit; fi

mkdir -p "$all"
work=$(mktemp -d "$all/building-XXXXXX")
# Several gigabytes that nothing uses again.
trap 'rm -rf "$work"' EXIT
export GOCACHE="$work/cache" GOMODCACHE="$work/modules"
kubernetes=$(awk '$1 == "k8s.io/kubernetes" {print $2}' go.mod)
mkdir "$work/programs"
# Without debugging information: less to build.
go build -mod=readonly -modcacherw -trimpath -gcflags=all=-dwarf=false \
  -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$kubernetes" \
  -o "$work/programs/kube" .
for name in $("$work/programs/kube" --names); do ln -s kube "$work/programs/$name"; done
# Another build may have been faster.
mv -T "$work/programs" "$folder" 2> /dev/null || [ -e "$folder" ]
echo "$folder"
