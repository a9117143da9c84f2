#!/usr/bin/env bash
# Builds the image of the binaries in dist/bin for amd64 and arm64 in the storage of buildah: release/image.sh NAME
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rm -rf dist/image
mkdir -p dist/image/tmp dist/image/var/lib/pawl
chmod 1777 dist/image/tmp
buildah bud --platform linux/amd64,linux/arm64 --manifest "$1" --timestamp "$(git show -s --format=%ct HEAD)" -f deploy/Dockerfile .
