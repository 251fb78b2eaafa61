#!/usr/bin/env bash
# The main story under the restrictions of the systemd unit (scripts/check-confined.py).
#
# Promise: where the cage cannot be made, that is said, and in CI it is a failure.

. "$(dirname "$0")/lib.sh"

what="the story under the unit's restrictions"
have systemd-analyze || apt_install systemd || {
    skip "$what" "systemd-analyze is not on this machine"
    exit 0
}
code=0
python3 scripts/check-confined.py || code=$?
[ "$code" -ne 77 ] || {
    skip "$what" "it needs root or user namespaces, and libseccomp"
    exit 0
}
exit "$code"
