#!/bin/sh
set -e
getent group pawl >/dev/null || groupadd --system pawl
getent passwd pawl >/dev/null ||
  useradd --system --gid pawl --home-dir /var/lib/pawl --no-create-home --shell /usr/sbin/nologin pawl
if [ -f /etc/pawl/pawl.yaml ]; then chgrp pawl /etc/pawl/pawl.yaml; fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
