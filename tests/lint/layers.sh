#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Who may include whom (docs/layout.md): the folder is the architecture. A rule is
# `ROOM: prefixes`, and holds for the folders below it that have none of their own; a room may
# always include its own headers. A file may have a rule of its own. Prefixes match the path in the #include.
set -eu
cd "$(dirname "$0")/../.."

rules='
base: base/
bpf: bpf/
pprof: base/ proto/
symbolizer: base/
symbolizer/kallsyms: base/
symbolizer/perf_map: base/
symbolizer/index: base/ bpf/abi/unwind.h
symbolizer/arguments: base/ bpf/abi/fetch.h
symbolizer/sandbox: base/ symbolizer/index/debug_names.h
symbolizer/sandboxed: base/ symbolizer/sandbox/ symbolizer/debuginfod/debuginfod_ symbolizer/indexer/builder.h symbolizer/indexer/keep_debug.h symbolizer/indexer/arguments/arguments.h symbolizer/indexer/elf/build_id.h symbolizer/indexer/elf/debug_names.h symbolizer/indexer/code/decoder.h
symbolizer/indexer: base/ symbolizer/index/index.h symbolizer/index/functions.h symbolizer/sandbox/job.h
symbolizer/indexer/arguments: base/ bpf/abi/fetch.h symbolizer/arguments/ symbolizer/indexer/elf/images.h symbolizer/sandbox/arguments_wire.h symbolizer/sandbox/job.h
symbolizer/indexer/elf: base/ symbolizer/index/debug_names.h symbolizer/sandbox/debug_files.h
symbolizer/indexer/writer: base/ bpf/abi/unwind.h symbolizer/index/ symbolizer/indexer/demangle.h
symbolizer/indexer/dwarf: base/ symbolizer/indexer/elf/ symbolizer/indexer/writer/
symbolizer/indexer/go: base/ bpf/abi/unwind.h bpf/abi/runtime_go.h symbolizer/indexer/elf/ symbolizer/indexer/writer/ symbolizer/indexer/dwarf/dwarf.h symbolizer/indexer/cfi/unwind_source.h symbolizer/indexer/runtime_source.h symbolizer/indexer/source.h symbolizer/indexer/source_range.h symbolizer/index/index.h symbolizer/index/functions.h symbolizer/index/runtime_go.h
symbolizer/indexer/code: base/ bpf/abi/unwind.h symbolizer/index/functions.h symbolizer/indexer/cfi/cfi.h symbolizer/indexer/cfi/unwind_source.h symbolizer/indexer/elf/ symbolizer/indexer/writer/ symbolizer/indexer/runtime_source.h symbolizer/indexer/source.h
symbolizer/indexer/cfi: base/ bpf/abi/unwind.h symbolizer/index/unwind_rule.h symbolizer/indexer/elf/ symbolizer/indexer/writer/ symbolizer/indexer/demangle.h symbolizer/indexer/source_range.h
symbolizer/builds: base/ bpf/abi/fetch.h symbolizer/arguments/ symbolizer/index/ symbolizer/sandbox/ symbolizer/debuginfod/
symbolizer/debuginfod: base/ symbolizer/index/index.h symbolizer/sandbox/ symbolizer/builds/
agent: base/ agent/commands/commands.h agent/sampler/files/file_child.h agent/server/merge/merge_child.h symbolizer/sandboxed/main.h
agent/settings: base/ agent/latency/latency_report.h agent/sampler/sampler.h agent/sampler/collect/collect.h agent/sampler/functions/patterns.h agent/sampler/process/selection.h agent/server/export/payload.h agent/server/export/labels/ agent/server/export/remote/remote.h bpf/abi/ symbolizer/debuginfod/debuginfod_fetch.h
agent/commands: base/ agent/settings/ agent/latency/ agent/trace/ agent/trace_arguments/ symbolizer/arguments/ agent/daemon/daemon.h agent/loop/ agent/sampler/ agent/report/ agent/top/ agent/server/store/file_name.h agent/server/export/payload.h agent/server/export/remote/remote.h agent/server/export/remote/remote_kinds.def agent/server/serve/serve.h agent/server/serve/page_file.h pprof/ proto/ bpf/abi/ symbolizer/builds/ symbolizer/debuginfod/ symbolizer/index/ symbolizer/kallsyms/ symbolizer/perf_map/ symbolizer/sandbox/ symbolizer/kernel_file.h symbolizer/kernel_image.h symbolizer/vdso.h
agent/loop: base/
agent/sampler: base/ agent/loop/ agent/sampler/ bpf/abi/ symbolizer/
agent/sampler/files: base/ symbolizer/sandbox/
agent/sampler/process: base/ agent/sampler/files/file_identity.h agent/sampler/seam/container_choices.h agent/sampler/seam/window_processes.h
agent/sampler/functions: base/ symbolizer/index/
agent/sampler/jit_maps: base/ agent/sampler/process/ symbolizer/perf_map/
agent/sampler/kernel_functions: base/ agent/sampler/collect/admin.h agent/sampler/functions/ agent/sampler/probes/kernel_latency/ agent/sampler/probes/latency/latency.h bpf/abi/
agent/sampler/kernel_symbols: base/ symbolizer/kallsyms/ bpf/abi/kernel_walk.h
agent/sampler/memory: base/ agent/sampler/process/
agent/sampler/module_indexes: base/ agent/sampler/process/ agent/sampler/recording/notes.h agent/sampler/seam/trouble.h symbolizer/builds/ symbolizer/debuginfod/ symbolizer/index/ symbolizer/kernel_file.h symbolizer/vdso.h
agent/sampler/profile: base/ bpf/abi/
agent/sampler/schedule: base/ agent/loop/ symbolizer/builds/
agent/sampler/seam: base/ bpf/abi/latency.h bpf/abi/fiber_facts.h agent/sampler/profile/frame.h agent/sampler/profile/sample_type.h symbolizer/index/index_frame.h
agent/sampler/symbolize: base/ agent/sampler/process/ agent/sampler/profile/frame.h agent/sampler/runtimes/names.h agent/sampler/seam/ symbolizer/index/ symbolizer/kallsyms/ symbolizer/perf_map/ symbolizer/kernel_file.h symbolizer/kernel_image.h
agent/sampler/windows: base/ agent/loop/ agent/sampler/profile/ agent/sampler/seam/sealed_window.h
agent/sampler/probes/off_cpu: base/ agent/sampler/collect/ agent/sampler/probes/ agent/sampler/profile/ bpf/abi/ bpf/probes/*.skel.h
agent/sampler/recording: base/ agent/sampler/collect/ agent/sampler/probes/probes.h agent/sampler/process/selection.h agent/sampler/profile/ agent/sampler/sampler.h agent/report/report.h symbolizer/index/ agent/sampler/seam/
agent/sampler/collect: base/ agent/loop/ agent/sampler/recording/notes.h bpf/abi/ bpf/shared.skel.h bpf/unwind/mapping_probe.skel.h
agent/sampler/probes: base/ symbolizer/arguments/ agent/sampler/collect/ agent/sampler/profile/sample_ bpf/abi/ bpf/probes/*.skel.h
agent/sampler/latency_probes: base/ agent/sampler/functions/ agent/sampler/kernel_functions/kernel_functions.h agent/sampler/probes/latency/latency.h agent/sampler/probed_files/ agent/sampler/process/ agent/sampler/seam/ bpf/abi/
agent/sampler/probed_files: base/ agent/sampler/functions/ agent/sampler/probes/latency/latency.h agent/sampler/process/processes.h bpf/abi/sampler.h symbolizer/index/
agent/sampler/unwind: base/ agent/sampler/process/ bpf/abi/ bpf/unwind/step.bpf.h symbolizer/index/
agent/sampler/samples: base/ agent/sampler/process/ agent/sampler/profile/ agent/sampler/unwind/ agent/sampler/kernel_symbols/ bpf/abi/
agent/sampler/runtimes: base/ bpf/abi/ symbolizer/index/ agent/sampler/seam/runtime_
agent/report: base/ agent/sampler/seam/ agent/sampler/profile/profile.h agent/sampler/profile/frame.h agent/sampler/profile/sample_labels. agent/sampler/recording/notes.h pprof/
agent/daemon: base/ agent/latency/ agent/settings/ agent/loop/ agent/report/ agent/server/ symbolizer/sandbox/ agent/sampler/seam/ agent/sampler/profile/profile.h agent/sampler/profile/fiber.h agent/sampler/profile/sample_labels. agent/sampler/profile/sample_type.h agent/sampler/process/selection.h bpf/abi/latency.h bpf/abi/fiber_facts.h
agent/daemon/daemon.c: base/ agent/daemon/ agent/settings/ agent/loop/ agent/server/ agent/sampler/sampler.h agent/sampler/collect/admin.h agent/sampler/process/selection.h
agent/server/store: base/
agent/server/merge: base/ agent/loop/ pprof/ symbolizer/sandbox/child.h symbolizer/sandbox/sandbox.h
agent/server/serve: base/ agent/loop/
agent/server/metadata: base/ proto/
agent/server/export: base/
agent/server/export/labels: base/ agent/server/export/payload.h
agent/server/export/spool: base/ agent/server/export/payload.h
agent/server/export/remote: base/ agent/server/export/payload.h agent/sampler/profile/sample_labels.def proto/
agent/server/export/debuginfo: base/ agent/server/export/remote/ proto/
agent/latency: base/ bpf/abi/latency.h
agent/trace_arguments: base/ bpf/abi/fetch.h symbolizer/arguments/
agent/trace: base/ agent/latency/latency_figures.h bpf/abi/trace.h
agent/top: base/ agent/loop/ agent/report/ agent/sampler/seam/
'

# Code that runs only in the sandbox may be included by nothing else, whatever a room's rule says:
# `PREFIX: folders and files`.
sandboxed_only='
symbolizer/indexer/: symbolizer/indexer/ symbolizer/sandboxed/
symbolizer/sandboxed/: symbolizer/sandboxed/ agent/main.c
'

# Who may include <elf.h>, libelf or libdw: files that parse ELF. Outside of the
# sandbox these are only the kernel's own (build_id_note.c for sysfs, vdso.c), and a file that we write (kernel_file.c).
elf_parsers='symbolizer/indexer/ symbolizer/sandboxed/ base/build_id_note.c symbolizer/vdso.c symbolizer/kernel_file.c'

# Who may include the disassemblers: one file for each.
disassemblers='symbolizer/indexer/code/decoder_'

room_of() { # the nearest folder with a rule, or nothing
	local room=$1
	while ! grep -q "^$room: " <<<"$rules"; do
		case $room in
		*/*) room=${room%/*} ;;
		*) return ;;
		esac
	done
	echo "$room"
}

allowed_for() { # the prefixes of a room
	sed -n "s|^$1: ||p" <<<"$rules"
}

permits() { # PREFIXES INCLUDED
	local prefix
	local IFS=' '
	set -f
	for prefix in $1; do
		# shellcheck disable=SC2053 # patterns are meant
		[[ $2 == $prefix || $2 == $prefix* ]] && return 0
	done
	return 1
}

may_be_included() { # FILE INCLUDED
	local prefix allowed
	while IFS=: read -r prefix allowed; do
		if [ -n "$prefix" ] && [[ $2 == "$prefix"* ]]; then
			permits "$allowed" "$1" || return 1
		fi
	done <<<"$sandboxed_only"
}

bad=0
complain() {
	echo "$1"
	bad=1
}

while IFS=: read -r file line included; do
	room=$(room_of "$file")
	if [ -z "$room" ]; then
		complain "$file: its folder has no rule in tests/lint/layers.sh"
		continue
	fi
	allowed=$(allowed_for "$room")
	case $included in
	*/*) ;;
	*) complain "$file:$line: write \"$included\" from the root of the project" && continue ;;
	esac
	may_be_included "$file" "$included" ||
		complain "$file:$line: $included runs in the sandbox only"
	permits "$room/ $allowed" "$included" ||
		complain "$file:$line: $room must not know $included (may: $allowed)"
done < <(git ls-files -co --exclude-standard -- '*.c' '*.h' | grep -v '^tests/' |
	xargs -r grep -nH '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' |
	sed -E 's/:[[:space:]]*#[[:space:]]*include[[:space:]]*"([^"]*)".*/:\1/')

while IFS=: read -r file _; do
	permits "$elf_parsers" "$file" || complain "$file: ELF files are parsed in the sandbox only"
done < <(git ls-files -co --exclude-standard -- '*.c' '*.h' | grep -v '^tests/' |
	xargs -r grep -HE '^[[:space:]]*#[[:space:]]*include[[:space:]]*<(elf|gelf|libelf|link|elfutils/.*)\.h>')

while IFS=: read -r file _; do
	permits "$disassemblers" "$file" || complain "$file: code is decoded in symbolizer/indexer/code only"
done < <(git ls-files -co --exclude-standard -- '*.c' '*.h' | grep -v '^tests/' |
	xargs -r grep -HE '^[[:space:]]*#[[:space:]]*include[[:space:]]*<(Zydis|Zycore|capstone)/')
exit $bad
