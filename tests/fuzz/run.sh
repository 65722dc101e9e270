#!/bin/sh
# run.sh MINUTES [TARGET...]: fuzzes each image target that long with libFuzzer, AddressSanitizer and UBSan, then
# merges what it found into the corpus.  Needs clang with its compiler runtime, and the -dev packages of the codecs.
# FUZZ_DIR (default: build-fuzz in the source tree) keeps programs, working corpora, logs and failing inputs.
set -eu
minutes=${1:?usage: run.sh MINUTES [TARGET...]}
shift
targets=${*:-jpeg png webp header}
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=${FUZZ_DIR:-$root/build-fuzz}
cc=${CC:-clang}
mkdir -p "$dir/src/codec" "$dir/seeds" "$dir/fail"

version() { pkg-config --modversion "$1"; }
cat >"$dir/src/codec/codec_config.h" <<END
#define DR_HAVE_PNG
#define DR_HAVE_WEBP
#define DR_PNG_VERSION "$(version libpng)"
#define DR_WEBP_VERSION "$(version libwebp)"
END
flags="-std=gnu11 -D_GNU_SOURCE -O1 -g -ffp-contract=off -I$root/include -I$root/src -I$root/tests -I$dir/src"
library="$root/src/codec/*.c $root/src/base/alloc.c $root/src/base/error.c $root/src/data/desc.c"
libs=$(pkg-config --libs libjpeg libpng libwebp)

# shellcheck disable=SC2086  # lists of words
$cc $flags -o "$dir/make_seeds" "$root/tests/fuzz/make_seeds.c" "$root/tests/unit/codec/make_image.c" $libs -lm
"$dir/make_seeds" "$dir/seeds"
build() { # build NAME TARGET FLAG...: the fuzzer of a target
    name=$1 target=$2
    shift 2
    # shellcheck disable=SC2086
    $cc $flags "$@" -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -o "$dir/$name" \
        "$root/tests/fuzz/fuzz_$target.c" $library $libs -lm
}

for t in $targets; do
    build "fuzz_$t" "$t" -DDR_FUZZ
    build "merge_$t" "$t" # without the messages' counters: the kept inputs need cover the code alone
    kept="$root/tests/fuzz/corpus/$t"
    mkdir -p "$kept" "$dir/work/$t"
    "$dir/fuzz_$t" -artifact_prefix="$dir/fail/$t-" -max_total_time=$((minutes * 60)) -max_len=4096 -timeout=20 \
        -rss_limit_mb=2048 -print_final_stats=1 "$dir/work/$t" "$dir/seeds/$t" "$kept" >"$dir/$t.log" 2>&1 ||
        { tail -30 "$dir/$t.log"; echo "fuzz_$t failed; input in $dir/fail"; exit 1; }
    grep -a 'cov:' "$dir/$t.log" | tail -1
    grep -a 'stat::number_of_executed_units' "$dir/$t.log"
    # The smallest set of inputs that covers the same code replaces the corpus; files named fail-* stay.
    rm -rf "$dir/merged/$t"
    mkdir -p "$dir/merged/$t"
    "$dir/merge_$t" -merge=1 -max_len=4096 -use_counters=0 "$dir/merged/$t" "$dir/seeds/$t" "$dir/work/$t" "$kept" \
        >>"$dir/$t.log" 2>&1
    find "$kept" -type f ! -name 'fail-*' -delete
    find "$dir/merged/$t" -type f -exec cp {} "$kept" \;
done
