#!/bin/sh
# The user pawl and /var/lib/pawl remain.
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
