#!/bin/sh
# Installs pawl @VERSION@ if the archive has the checksum of the release's SHA256SUMS.
#
#   curl -fsSL https://github.com/pawlhq/pawl/releases/latest/download/install.sh | sh
#   sh install.sh --uninstall
#
# PAWL_BASE_URL is the address of the release's files; set it for a mirror.
# The checksums come from the same server, so they do not prove the origin: docs/INSTALL.md, "Verify".
# PAWL_BIN is the folder of the program, by default ~/.local/bin, and for root /usr/local/bin.
set -eu

fail() { echo "install.sh: $*" >&2; exit 1; }

fetch() {
  if command -v curl >/dev/null; then curl --proto "$proto" -fsSL -o "$2" "$1"
  elif command -v wget >/dev/null; then wget -qO "$2" "$1"
  else fail "needs curl or wget"; fi || fail "cannot download $1"
}

main() {
  version=@VERSION@
  base=${PAWL_BASE_URL:-https://github.com/pawlhq/pawl/releases/download/v$version}
  case $base in http:*) proto='=http,https' ;; *) proto='=https' ;; esac
  if [ "$(id -u)" = 0 ]; then bin=${PAWL_BIN:-/usr/local/bin}; else bin=${PAWL_BIN:-${HOME:?set HOME or PAWL_BIN}/.local/bin}; fi
  case ${1:-} in
    '') ;;
    --uninstall) [ -e "$bin/pawl" ] || fail "$bin/pawl does not exist: set PAWL_BIN"; rm "$bin/pawl"; echo "removed $bin/pawl"; return ;;
    *) fail "unknown argument $1" ;;
  esac

  os=$(uname -s | tr '[:upper:]' '[:lower:]')
  arch=$(uname -m)
  case $arch in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; esac
  case $os/$arch in
    linux/amd64 | linux/arm64 | darwin/amd64 | darwin/arm64) ;;
    *) fail "no archive for $os on $arch" ;;
  esac
  name=pawl_${version}_${os}_$arch

  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' EXIT
  fetch "$base/SHA256SUMS" "$dir/SHA256SUMS"
  fetch "$base/$name.tar.gz" "$dir/$name.tar.gz"
  want=$(awk -v f="$name.tar.gz" '$2 == f { print $1 }' "$dir/SHA256SUMS")
  if command -v sha256sum >/dev/null; then got=$(sha256sum "$dir/$name.tar.gz"); else got=$(shasum -a 256 "$dir/$name.tar.gz"); fi
  [ -n "$want" ] && [ "${got%% *}" = "$want" ] || fail "$base/$name.tar.gz does not match its checksum in SHA256SUMS: nothing is installed"

  tar -xzf "$dir/$name.tar.gz" -C "$dir"
  mkdir -p "$bin" || fail "cannot create $bin: set PAWL_BIN"
  install -m 755 "$dir/$name/pawl" "$bin/pawl" || fail "cannot write $bin/pawl: set PAWL_BIN"
  "$bin/pawl" version
  case :$PATH: in *:"$bin":*) ;; *) echo "Add $bin to PATH." ;; esac
}

main "$@"
