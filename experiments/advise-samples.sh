#!/bin/sh
# Whether samples of the addresses drop what would have won: workloads whose structure is known, large enough that `isotherm advise` tries
# candidates on samples first, each beside every combination simulated in full. Prints the table of `experiments/advise.sh --grid`.
#   experiments/advise-samples.sh [options of advise]
# Needs a built target/release/isotherm.
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# What goes for all: 2.5 GiB of addresses, 4 M requests.
all=pages=640Ki,writes=4M,seed=7
make() {
    target/release/isotherm trace gen "synth:$2" "$folder/$1.csv.zst"
}
# A twentieth of the addresses has half of the writes, a fifth the next 30 %: three ranges.
make three-ranges "hotcold,$all,hot=0.05,hot_writes=1,order=ranked,share=5+hotcold,hot=0.25,hot_writes=1,order=ranked,share=3+uniform,share=2"
# The same pages scattered: nothing to be told by address, but all by how often a page is written.
make three-heats "hotcold,$all,hot=0.05,hot_writes=1,share=5+hotcold,hot=0.25,hot_writes=1,share=3+uniform,share=2"
# Everything is written around in order in requests of 16 pages, and single pages of a skewed part are overwritten meanwhile.
make log-and-tree "zipf,theta=1.1,order=ranked,$all,size=1/3:16/1,share=6+sequential,share=4"
# No page differs from another.
make uniform "uniform,$all"
experiments/advise.sh "$folder" --grid "$@"
