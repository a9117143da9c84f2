#!/usr/bin/env bash
# Builds the files of a release of this commit: dist/bin has the binaries, dist/release the files to publish.
# Two builds of one commit with the same versions of Go, GNU tar, gzip and zip have the same checksums. Needs git too.
#
#   release/release.sh                  the version is the tag of this commit
#   VERSION=0.1.0 release/release.sh    a trial
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
umask 022
export LC_ALL=C TZ=UTC CGO_ENABLED=0 GOENV=off GOWORK=off GOFLAGS='' GOEXPERIMENT='' GOAMD64=v1 GOARM64=v8.0 GOFIPS140=off

[ -z "$(git status --porcelain)" ] || { echo "release: uncommitted changes: commit them first" >&2; exit 1; }
VERSION=${VERSION:-$(git describe --tags --match 'v*')}
export VERSION=${VERSION#v}
app=github.com/pawlhq/pawl/cmd/pawl/app
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git show -s --format=%ct HEAD)
export SOURCE_DATE_EPOCH

sbom=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.4
out=dist/release
rm -rf dist/bin dist/stage "$out"
mkdir -p dist/stage "$out"
go -C release/check run ./licenses >dist/THIRD_PARTY_LICENSES

# Adds the documents to dist/stage/NAME and packs it: archive NAME tar.gz|zip|lambda
archive() {
  install -m 644 LICENSE README.md dist/THIRD_PARTY_LICENSES "dist/stage/$1/"
  find "dist/stage/$1" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
  case $2 in
    tar.gz) tar --sort=name --format=ustar --owner=0 --group=0 --numeric-owner -C dist/stage -c "$1" | gzip -9n >"$out/$1.tar.gz" ;;
    zip) (cd dist/stage && find "$1" -type f | sort | zip -qX9@ "../release/$1.zip") ;;
    lambda) (cd "dist/stage/$1" && zip -qX9 "../../release/$1.zip" bootstrap LICENSE THIRD_PARTY_LICENSES) ;;
  esac
}

for os in linux darwin windows; do
  for arch in amd64 arm64; do
    echo "release: pawl $VERSION for $os on $arch" >&2
    GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=false \
      -ldflags "-s -w -buildid= -X $app.version=v$VERSION -X $app.commit=$commit" -o "dist/bin/${os}_$arch/" ./cmd/pawl
    name=pawl_${VERSION}_${os}_$arch
    go run -trimpath $sbom bin -json -std -noserial -notimestamp -version "v$VERSION" -output "$out/$name.sbom.json" "dist/bin/${os}_$arch"/pawl*
    mkdir "dist/stage/$name"
    cp "dist/bin/${os}_$arch"/* "dist/stage/$name/"
    if [ $os = windows ]; then archive "$name" zip; else archive "$name" tar.gz; fi
  done
done

for arch in amd64 arm64; do
  name=pawl_${VERSION}_lambda_$arch
  mkdir "dist/stage/$name"
  cp "dist/bin/linux_$arch/pawl" "dist/stage/$name/bootstrap"
  archive "$name" lambda
  for packager in deb rpm; do
    ARCH=$arch go run $nfpm package --config release/nfpm.yaml --packager $packager --target "$out" >&2
  done
done

cd "$out"
sed "s/@VERSION@/$VERSION/" ../../release/install.sh >install.sh
formula=$(sed "s/@VERSION@/$VERSION/" ../../release/pawl.rb)
for platform in darwin_amd64 darwin_arm64 linux_amd64 linux_arm64; do
  sum=$(sha256sum "pawl_${VERSION}_$platform.tar.gz")
  formula=${formula//@$platform@/${sum%% *}}
done
echo "$formula" >pawl.rb
sha256sum -- * >SHA256SUMS
rm -r ../stage
