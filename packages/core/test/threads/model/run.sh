#!/bin/sh
# Checks dispatcher.pml with SPIN in its variants. Needs `spin` and `gcc` (Debian: apt-get install spin gcc).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for variant in "-DN=2" "-DN=3" "-DN=3 -DCANCEL" "-DN=2 -DDEATH" "-DN=2 -DDEATH -DCANCEL" "-DN=3 -DDEATH"; do
  # shellcheck disable=SC2086
  spin $variant -a "$here/dispatcher.pml"
  gcc -O2 -w -DSAFETY -DCOLLAPSE -DVECTORSZ=4096 -o pan pan.c
  ./pan -m1000000 >result
  echo "== $variant: $(grep -o 'errors: [0-9]*' result), $(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' result) states"
  grep -q 'errors: 0' result || { cat result; exit 1; }
done
