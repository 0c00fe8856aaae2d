#!/bin/sh
# Installs `runai`, the program for researchers, from the server that gave out this script.
#   RUNAI_SERVER       where the server is
#   RUNAI_INSTALL_DIR  where to put the program
set -eu

server="${RUNAI_SERVER:-@URL@}"
folder="${RUNAI_INSTALL_DIR:-$HOME/.local/bin}"

system="$(uname -s | tr '[:upper:]' '[:lower:]')"
case "$(uname -m)" in
    x86_64 | amd64) machine=amd64 ;;
    aarch64 | arm64) machine=arm64 ;;
    *) machine="$(uname -m)" ;;
esac
program="$server/api/v1/cli-exposer/dist/$system/$machine/runai"

mkdir -p "$folder"
part="$(mktemp "$folder/.runai.XXXXXX")"
trap 'rm -f "$part"' EXIT
if command -v curl > /dev/null; then
    curl -fsSL -o "$part" "$program" || failed=yes
elif command -v wget > /dev/null; then
    wget -q -O "$part" "$program" || failed=yes
else
    echo "neither curl nor wget is installed; install one of them" >&2
    exit 1
fi
if [ "${failed:-no}" = yes ]; then
    echo "$program could not be downloaded; the server may have none for $system/$machine" >&2
    exit 1
fi
chmod 755 "$part"
mv -f "$part" "$folder/runai"
echo "installed $folder/runai"
case ":$PATH:" in
    *":$folder:"*) ;;
    *) echo "add it to your path: export PATH=\"$folder:\$PATH\"" ;;
esac
echo "tell it where the server is: export RUNAI_CP_URL=$server"
