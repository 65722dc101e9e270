#!/bin/sh
# run.sh MINUTES [TARGET...]: fuzzes each target that long with libFuzzer, AddressSanitizer and UBSan; jpeg_own with
# MemorySanitizer instead.
#
# Needs clang with its compiler runtime, and the -dev packages of the libraries.  FUZZ_DIR (default: build-fuzz in the
# source tree) keeps programs, working corpora, logs and failing inputs.  FUZZ_KEEP=1 replaces what an earlier run left
# in corpus/ by the smallest set of inputs that covers the same code; files with names of their own stay.
set -eu
minutes=${1:?usage: run.sh MINUTES [TARGET...]}
shift
root=$(cd "$(dirname "$0")/../.." && pwd)
targets=${*:-$(cd "$root/tests/fuzz" && ls fuzz_*.c | sed 's/fuzz_\(.*\)\.c/\1/')}
dir=${FUZZ_DIR:-$root/build-fuzz}
cc=${FUZZ_CC:-clang}
mkdir -p "$dir/src/codec" "$dir/seeds" "$dir/fail"

cat >"$dir/src/codec/codec_config.h" <<END
#define DR_HAVE_PNG
#define DR_HAVE_WEBP
#define DR_HAVE_LZ4
#define DR_HAVE_ZSTD
#define DR_HAVE_SNAPPY
#define DR_HAVE_ZLIB
#define DR_HAVE_GIF
#define DR_HAVE_TIFF
#define DR_PNG_VERSION "$(pkg-config --modversion libpng)"
#define DR_WEBP_VERSION "$(pkg-config --modversion libwebp)"
#define DR_TIFF_VERSION "$(pkg-config --modversion libtiff-4)"
#define DR_SNAPPY_VERSION "$(pkg-config --modversion snappy)"
END
flags="-std=gnu11 -D_GNU_SOURCE -DDR_VERSION=\"fuzz\" -O1 -g -ffp-contract=off -I$root/include -I$root/src -I$root/tests -I$dir/src"
src=$root/src
library="$src/base/*.c $src/trace/*.c $src/data/*.c $src/kernel/*.c $src/source/*.c $src/index/*.c $src/codec/*.c $src/codec/*/*.c $src/format/*.c $src/store/*.c"
library="$library $src/monitor/*.c $src/sched/cost_ledger.c $src/rl/*.c $src/pack/atomic_file.c"
libs="$(pkg-config --libs libjpeg libpng libwebp libtiff-4 zlib liblz4 libzstd snappy libxxhash jansson) -lgif -lm -pthread"
made=$root/tests/unit/codec/image
changes="$made/blob.c $made/jpeg_part.c $made/odd_jpeg.c $made/damaged_jpeg.c"
case $(uname -m) in x86_64) simd="-DDR_HAVE_AVX2=1 -DDR_HAVE_AVX512=1" ;; *) simd= ;; esac
checks="-fsanitize=address,undefined -fno-sanitize-recover=undefined"

# What MemorySanitizer follows: drapps' JPEG decoder with the C kernels, and no library that it has not compiled.
alone="$src/base/alloc.c $src/base/error.c $src/base/fmath.c $src/data/desc.c $src/data/byte_ranges.c $src/kernel/*.c"
for name in image exif pixels sink reuse_buffer jpeg_parse jpeg_huffman jpeg_entropy jpeg_baseline jpeg_lines jpeg_partial jpeg_seek; do
    alone="$alone $src/codec/image/$name.c"
done

# shellcheck disable=SC2086  # lists of words
$cc $flags -o "$dir/make_seeds" "$root/tests/fuzz/make_seeds.c" "$made/make_image.c" "$made/jpeg_kind.c" $changes $libs
"$dir/make_seeds" "$dir/seeds"
# shellcheck disable=SC2086
(mkdir -p "$dir/objects" && cd "$dir/objects" && rm -f ./*.o && flags="$flags $simd $checks -fsanitize=fuzzer-no-link" &&
    $cc $flags -c $library &&
    if [ "$simd" ]; then
        $cc $flags -mavx2 -mno-fma -c "$src"/kernel/x86/*_avx2.c
        $cc $flags -mavx512f -mavx512bw -mavx512vl -mavx512vbmi -mavx512vnni -c "$src"/kernel/x86/*_avx512.c
    fi)
# The mutator is neither checked nor counted: edges are to be those of the library.
# shellcheck disable=SC2086
(mkdir -p "$dir/mutate" && cd "$dir/mutate" && $cc $flags -c "$root/tests/fuzz/mutate_jpeg.c" $changes)

build() { # build NAME TARGET FLAG...: the fuzzer of a target
    name=$1 target=$2 with="$dir/objects/*.o $libs" how=$checks
    shift 2
    case $target in
    jpeg | partial) with="$dir/mutate/*.o $with" ;;
    jpeg_diff) with="$made/both_jpeg.c $dir/mutate/*.o $with" ;;
    proc) with="$root/tests/unit/monitor/proc_tree.c $with" ;;
    request) # graphs are compiled: their ops are not in the library above
        with="$src/op/*.c $src/op/*/*.c $src/graph/*.c $src/serve/byte_range.c $src/serve/heads.c $src/serve/tokens.c $with"
        ;;
    jpeg_own)
        with="$alone $dir/mutate/*.o -lm -pthread"
        how="-DFUZZ_ALONE -fsanitize=memory -fsanitize-memory-track-origins"
        ;;
    esac
    # shellcheck disable=SC2086
    $cc $flags "$@" $how -fsanitize=fuzzer -o "$dir/$name" "$root/tests/fuzz/fuzz_$target.c" $with
}

keep() { # keep TARGET: the kept inputs need cover the code alone, so without the counters of fuzz_image.h
    build "merge_$1" "$1"
    rm -rf "$dir/merged/$1"
    mkdir -p "$dir/merged/$1"
    "$dir/merge_$1" -merge=1 -max_len=4096 -use_counters=0 "$dir/merged/$1" "$dir/seeds/$1" "$dir/work/$1" "$kept" \
        >>"$dir/$1.log" 2>&1
    find "$kept" -type f -regex '.*/[0-9a-f]*' -delete
    find "$dir/merged/$1" -type f -exec cp {} "$kept" \;
}

for t in $targets; do
    kept="$root/tests/fuzz/corpus/fuzz_$t"
    case $t in jpeg_own | partial) kept="$root/tests/fuzz/corpus/fuzz_jpeg_diff" ;; esac # the same inputs
    mkdir -p "$kept" "$dir/work/$t" "$dir/seeds/$t"
    build "fuzz_$t" "$t" -DDR_FUZZ
    "$dir/fuzz_$t" -artifact_prefix="$dir/fail/$t-" -max_total_time=$((minutes * 60)) -max_len=4096 -timeout=20 \
        -rss_limit_mb=2048 -print_final_stats=1 "$dir/work/$t" "$dir/seeds/$t" "$kept" >"$dir/$t.log" 2>&1 ||
        { tail -30 "$dir/$t.log"; echo "fuzz_$t failed; input in $dir/fail"; exit 1; }
    echo "fuzz_$t: $(grep -a 'cov:' "$dir/$t.log" | tail -1)"
    if [ "${FUZZ_KEEP:-0}" = 1 ] && [ "$t" != jpeg_own ] && [ "$t" != partial ]; then keep "$t"; fi
done
