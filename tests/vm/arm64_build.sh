# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For the tests of guests with aarch64: the program, cross-built in build/arm64, and a Debian of its own beside it.
# To be sourced from the project's root.

# shellcheck disable=SC2034 # used by who sources this
arm64_tools=(qemu-system-aarch64 aarch64-linux-gnu-gcc aarch64-linux-gnu-g++)
# Foreign programs whose frames are compared with their machine code.
# shellcheck disable=SC2034
arm64_pairs="xz zstd sqlite3 sort python3 perl openssl gzip"

# Prints the root directory, made once.
arm64_root() {
	tests/vm/root.sh --arch arm64 libelf-dev libdw-dev libbpf-dev zlib1g-dev libzstd-dev libprotobuf-c-dev \
		libcurl4-openssl-dev libmicrohttpd-dev libyaml-dev libpcre2-dev libdeflate-dev libxxhash-dev \
		libseccomp-dev liblzma-dev nettle-dev libjansson-dev libiberty-dev libcapstone-dev libzydis-dev libc6-dev \
		linux-libc-dev python3-minimal libpython3-stdlib util-linux xz-utils zstd sqlite3 perl openssl gzip musl-dev
}

# Builds SOURCE with the musl of ROOT, as musl-gcc does on its own machine. A program that is not static wants it as
# LIBC in the guest.
arm64_musl_gcc() { # ROOT LIBC [FLAG…] -o OUT SOURCE
	local root=$1 libc=$2 musl=usr/lib/aarch64-linux-musl compiler=aarch64-linux-gnu-gcc start=Scrt1.o libgcc
	shift 2
	[[ " $* " != *" -static "* ]] || start=crt1.o
	libgcc=$($compiler -print-libgcc-file-name)
	$compiler -nostdinc -isystem "$root/usr/include/aarch64-linux-musl" -isystem "$(dirname "$libgcc")/include" \
		-nostdlib -Wl,--dynamic-linker="$libc" "$root/$musl/$start" "$root/$musl/crti.o" "$@" \
		-L"$root/$musl" -Wl,--start-group -lc "$libgcc" -Wl,--end-group "$root/$musl/crtn.o"
}

# Builds build/arm64/fathom with the libraries of ROOT; what make says is shown only if it fails.
arm64_build() { # ROOT LOG
	local root=$1 log=$2
	PKG_CONFIG_SYSROOT_DIR=$root \
		PKG_CONFIG_LIBDIR=$root/usr/lib/aarch64-linux-gnu/pkgconfig:$root/usr/share/pkgconfig \
		make -j2 machine=aarch64 O=build/arm64 CC="aarch64-linux-gnu-gcc --sysroot=$root" \
		CLANG="clang -idirafter $root/usr/include/aarch64-linux-gnu" build/arm64/fathom >"$log" 2>&1 ||
		{ cat "$log" && return 1; }
}
