#!/bin/sh
# dpkg passes "remove", and rpm passes the number of versions that remain.
set -e
case $1 in
  remove | 0) if [ -d /run/systemd/system ]; then systemctl disable --now pawl; fi ;;
esac
