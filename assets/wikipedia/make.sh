#!/bin/sh
# Remakes what lies here: the dump extract from the Python package gensim, where it is a test file, and the
# word pieces from the extract. Needs pip, unzip, sha256sum and cargo; run it anywhere.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

pip download --quiet --no-deps --only-binary=:all: --dest "$work" gensim==4.4.0
unzip -q "$work"/gensim-*.whl 'gensim/test/test_data/enwiki-latest-pages-articles1*' -d "$work"
mv "$work"/gensim/test/test_data/enwiki-latest-pages-articles1* "$here/enwiki-2016-extract.xml.bz2"
chmod 644 "$here/enwiki-2016-extract.xml.bz2"
echo "a53f4648dec40467ebdcbc7a1307eddb51fe6e28e9309f6ebde81ba0d04bea2d  $here/enwiki-2016-extract.xml.bz2" |
    sha256sum --check --quiet

# The example is built with the old pieces, which it does not read.
cd "$here/../.."
cargo run --quiet --release --example bundled_tokenizer > "$work/vocab.txt"
mv "$work/vocab.txt" "$here/vocab.txt"
