# Fathom's build. Everything made goes to build/ ($(O)); V=1 shows the commands.
#
#   make               the program: build/fathom
#   make check         unit, BPF, scenario tests       make lint       house rules
#   make fuzz TIME=10  each fuzz target for some seconds
#   make mutation      changes the program in small places: do the tests notice?
#   make bench         figures, beside the peers'     make format     clang-format
#   make performance   docs/performance.md from them
#   make install DESTDIR= PREFIX=/usr/local SYSCONFDIR=/etc    make clean
#   make image         a container image of this machine's architecture: build/fathom-image.tar
#   make deb, make rpm packages for this distribution: build/fathom.deb, build/fathom.rpm
#   SAN=address,undefined  a sanitizer build in a folder of its own
#   WERROR=            warnings do not fail the build (for packagers)

.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:

CC = gcc
CLANG ?= clang
FUZZ_CC ?= clang
CLANG_FORMAT ?= clang-format
LLVM_STRIP ?= llvm-strip
PROTOC_C ?= protoc-c
PKG_CONFIG ?= pkg-config
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
DESTDIR ?=
WERROR ?= -Werror
SAN ?=
TIME ?= 10
V ?=

comma := ,
ifeq ($(SAN),)
O ?= build
else
O ?= build/san-$(subst $(comma),-,$(SAN))
san_flags := -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer -Wno-format-truncation
endif
# O is spelled in one way, however it was given, because make knows targets and dependency files by their spelling:
# relative if it is below this folder, otherwise absolute.
given := $(abspath $(O))
override O := $(firstword $(patsubst $(CURDIR)/%,%,$(filter $(CURDIR)/%,$(given) $(realpath $(dir $(given)))/$(notdir $(given)))) $(given))
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-8s %s\n' '$(1)' '$(2)')

# In a clone what `git describe` says: 0.2.0 at the tag v0.2.0, then 0.2.0-7-g1a2b3c4; before the first tag,
# VERSION with the number of commits. Elsewhere, as in a tarball, VERSION.
version := $(shell cat VERSION 2>/dev/null || echo 0)
ifneq ($(wildcard .git),)
described := $(patsubst v%,%,$(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null))
commit := $(shell git describe --always --exclude '*' --dirty 2>/dev/null)
commits := $(shell git rev-list --count HEAD 2>/dev/null)
version := $(or $(described),$(version)$(if $(commit),-$(commits)-g$(commit)))
endif
machine := $(shell uname -m)
bpf_arch := $(if $(filter aarch64,$(machine)),arm64,x86)

libs := libbpf libelf yaml-0.1 libpcre2-8 libdw libprotobuf-c libzstd libdeflate libxxhash libseccomp liblzma nettle jansson
warnings := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wundef \
	-Wno-missing-field-initializers -Wno-override-init
CPPFLAGS += -I. -I$(O)/gen -D_GNU_SOURCE
# Under sanitizers -O1: it compiles in two thirds of the time, and its stacks are easier to read. But gcc
# knows less of the lengths of texts then, and warns where it does not with -O2.
CFLAGS ?= $(if $(SAN),-O1,-O2) -g
# Each function in a section of its own, so that the linker drops functions that nobody calls.
sections := -ffunction-sections -fdata-sections
all_cflags = -std=gnu17 $(CFLAGS) $(sections) $(warnings) $(WERROR) -fstack-protector-strong $(san_flags)
# libiberty (demangling) is a static library without a pkg-config file.
LDLIBS += $(shell $(PKG_CONFIG) --libs $(libs)) -l:libiberty.a -lz -lpthread
LDFLAGS += $(san_flags) -Wl,--as-needed -Wl,--gc-sections -Wl,-z,relro,-z,now
# Loaded on demand, not linked: base/curl_on_demand.c, agent/server/serve/microhttpd_on_demand.c,
# symbolizer/indexer/code/decoder.c.
loaded_libs := libcurl libmicrohttpd
soname = $(shell readelf -d "$$($(CC) -print-file-name=lib$(1).so)" 2>/dev/null | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
decoder_libraries := -DFATHOM_ZYDIS_LIBRARY='"$(call soname,Zydis)"' \
	-DFATHOM_CAPSTONE_LIBRARY='"$(call soname,capstone)"'
lib_cflags := $(shell $(PKG_CONFIG) --cflags $(libs) $(loaded_libs) 2>/dev/null)

# A folder is a room; a new one needs no line here, only a rule in tests/lint/layers.sh.
sources := $(sort $(shell find base symbolizer pprof agent -name '*.c'))
# Code for one architecture is in a file of its own: NAME_x86_64.c, NAME_aarch64.c.
other_machines := $(filter-out $(machine),x86_64 aarch64)
sources := $(filter-out $(foreach m,$(other_machines),%_$(m).c),$(sources))
objects := $(sources:%.c=$(O)/obj/%.o)
main_object := $(O)/obj/agent/main.o
protos := $(wildcard proto/*.proto)
proto_objects := $(protos:%.proto=$(O)/gen/%.pb-c.o)
bpf_programs := $(wildcard bpf/*.bpf.c bpf/*/*.bpf.c)
skeletons := $(bpf_programs:bpf/%.bpf.c=$(O)/gen/bpf/%.skel.h)
generated := $(protos:%.proto=$(O)/gen/%.pb-c.h) $(skeletons) $(O)/gen/base/version.h
library := $(O)/libfathom.a

unit_tests := $(patsubst tests/unit/%.c,$(O)/tests/unit/%,$(wildcard tests/unit/test_*.c))
unit_support := $(patsubst %.c,$(O)/obj/%.o,$(filter-out $(wildcard tests/unit/test_*.c) \
	tests/unit/torture.c,$(wildcard tests/unit/*.c)))
bpf_tests := $(patsubst tests/bpf/%.c,$(O)/tests/bpf/%,$(wildcard tests/bpf/test_*.c))
bpf_support := $(patsubst %.c,$(O)/obj/%.o,$(filter-out $(wildcard tests/bpf/test_*.c),$(wildcard tests/bpf/*.c)))
fuzz_targets := $(patsubst tests/fuzz/%.c,$(O)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

ifneq ($(SAN),)
elsewhere := $(filter-out $(O)/%,$(filter build/%,$(MAKECMDGOALS)))
$(if $(elsewhere),$(error SAN=$(SAN) builds in $(O)/, there is nothing to do for $(elsewhere)))
endif

# Targets may be named by their absolute paths, too.
$(CURDIR)/%: % ;

.PHONY: FORCE all check check-unit check-scenario lint format fuzz bench performance mutation install image deb rpm clean compile_commands ldlibs
all: $(O)/fathom $(if $(SAN),,$(O)/fathom.1 $(O)/completion/fathom $(O)/completion/_fathom $(O)/completion/fathom.fish compile_commands.json)

# ---- generated code -------------------------------------------------------------------------
$(O)/gen/proto/%.pb-c.c $(O)/gen/proto/%.pb-c.h: proto/%.proto
	$(call say,PROTOC,$<)
	$(Q)mkdir -p $(O)/gen/proto
	$(Q)$(PROTOC_C) --c_out=$(O)/gen -I. $<

# A file of its own, so that a commit compiles only those again that show the version.
$(O)/gen/base/version.h: FORCE
	@mkdir -p $(@D)
	@printf '/* SPDX-License-Identifier: Apache-2.0 */\n#pragma once\n#define FATHOM_VERSION "%s"\n' '$(version)' > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# The few kernel types that the BPF programs read, from the list bpf/kernel.types.
$(O)/gen/bpf/kernel_types.h: bpf/kernel.types bpf/kernel-types.awk
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)awk -f bpf/kernel-types.awk bpf/kernel.types > $@

bpf_cflags = -target bpf -D__BPF__ -D__TARGET_ARCH_$(bpf_arch) -O2 -g -mcpu=v3 -Wall -Wextra $(WERROR) \
	-Wno-unused-parameter -I. -I$(O)/gen -idirafter /usr/include/$(machine)-linux-gnu \
	-fdebug-prefix-map=$(CURDIR)=/fathom
# The objects are embedded. What libbpf does not read is a third of them; the text of each source line, which
# clang copies into them if it finds the file, is another.
bpf_unread = -R .rel.BTF -R .rel.BTF.ext -R .llvm_addrsig -N "LBB*"
$(O)/gen/bpf/%.bpf.o: bpf/%.bpf.c $(O)/gen/bpf/kernel_types.h $(O)/flags
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(bpf_cflags) -MMD -MP -MT $@ -c $< -o $@
	$(Q)$(LLVM_STRIP) -g -w $(bpf_unread) $@

$(O)/gen/tests/bpf/programs/%.bpf.o: tests/bpf/programs/%.bpf.c $(O)/gen/bpf/kernel_types.h $(O)/flags
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(bpf_cflags) -MMD -MP -MT $@ -c $< -o $@

# With the object compressed (-n: the same bytes each time).
$(O)/gen/%.skel.h: $(O)/gen/%.bpf.o bpf/skeleton.awk
	$(call say,SKEL,$@)
	$(Q)gzip -9nc $< > $<.gz
	$(Q)$(BPFTOOL) gen skeleton $< name $(notdir $*)_bpf > $(@:.skel.h=.skeleton)
	$(Q)awk -v object=$<.gz -f bpf/skeleton.awk $(@:.skel.h=.skeleton) > $@

# The page of `fathom agent`, one file: a line `<!-- include: NAME -->` is replaced by NAME's content as a
# style or script; each response inserts its own nonce there. It is embedded compressed (-n: the same
# bytes each time), as it is sent to browsers.
page_sources := $(wildcard agent/server/serve/page/*)
page := $(O)/gen/serve/page.html.gz
$(page): $(page_sources) agent/server/serve/page.awk
	$(call say,PAGE,$@)
	$(Q)mkdir -p $(@D)
	$(Q)awk -f agent/server/serve/page.awk agent/server/serve/page/index.html > $(@:.gz=)
	$(Q)gzip -9nc $(@:.gz=) > $@
$(O)/obj/agent/server/serve/page.o $(O)/fuzzobj/agent/server/serve/page.o: CPPFLAGS += -DFATHOM_PAGE='"$(page)"'
$(O)/obj/agent/server/serve/page.o $(O)/fuzzobj/agent/server/serve/page.o: $(page)

# ---- the program ----------------------------------------------------------------------------
# Each row of call frame information goes through these, millions for a large file.
hot := eh_frame eh_frame_cfa eh_frame_rule unwind unwind_pages unwind_pack unwind_codes
$(hot:%=$(O)/obj/symbolizer/indexer/cfi/%.o): private CFLAGS += -O3

# These run once, at the start or at a user's request: there the size of the program matters more than its speed.
ifeq ($(SAN),)
$(O)/obj/agent/commands/%.o $(O)/obj/agent/settings/%.o $(O)/obj/agent/latency/%.o $(O)/obj/agent/top/%.o \
$(O)/obj/agent/server/metadata/%.o $(O)/obj/agent/server/serve/%.o $(O)/obj/agent/server/store/%.o: \
	private CFLAGS += -Os
endif

microhttpd := agent/server/serve/microhttpd_on_demand.o
$(O)/obj/$(microhttpd) $(O)/fuzzobj/$(microhttpd): CPPFLAGS += -DFATHOM_MICROHTTPD_LIBRARY='"$(call soname,microhttpd)"'
decoders := $(addprefix symbolizer/indexer/code/,decoder_zydis.o decoder_capstone.o)
$(decoders:%=$(O)/obj/%) $(decoders:%=$(O)/fuzzobj/%): CPPFLAGS += $(decoder_libraries)

$(O)/obj/%.o: %.c $(O)/flags | $(generated)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(lib_cflags) $(all_cflags) -MMD -MP -c $< -o $@

$(O)/gen/proto/%.pb-c.o: $(O)/gen/proto/%.pb-c.c $(O)/flags
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(lib_cflags) -std=gnu17 $(CFLAGS) $(sections) $(san_flags) -MMD -MP -c $< -o $@

$(library): $(filter-out $(main_object),$(objects)) $(proto_objects)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/fathom: $(main_object) $(library)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# The manual page, from the settings table.
$(O)/fathom.1: $(O)/fathom
	$(call say,MAN,$@)
	$(Q)$< manual > $@

# Completion, from the same table; the shells expect these names.
$(O)/completion/fathom: $(O)/fathom
	$(Q)mkdir -p $(@D)
	$(Q)$< completion bash > $@
$(O)/completion/_fathom: $(O)/fathom
	$(Q)mkdir -p $(@D)
	$(Q)$< completion zsh > $@

$(O)/completion/fathom.fish: $(O)/fathom
	$(Q)mkdir -p $(@D)
	$(Q)$< completion fish > $@

# Rebuilds when a flag, a library, the version or a compiler changes.
all_flags = $(CC) $(CPPFLAGS) $(lib_cflags) $(all_cflags) $(LDFLAGS) $(LDLIBS) $(CLANG) $(bpf_cflags) $(bpf_unread)
$(O)/flags: FORCE
	@mkdir -p $(O)
	@printf '%s\n' '$(all_flags)' | cmp -s - $@ || printf '%s\n' '$(all_flags)' > $@
FORCE:

compile_commands.json: Makefile $(sources)
	$(Q){ echo '['; sep=; for f in $(sources); do \
		printf '%s{"directory":"%s","file":"%s","command":"%s"}' "$$sep" "$(CURDIR)" "$$f" \
		"$(CC) $(subst ",\\\",$(CPPFLAGS)) $(lib_cflags) -std=gnu17 $(CFLAGS) $(warnings) -c $$f"; \
		sep=",`printf '\n_'`"; sep="$${sep%_}"; done; echo; echo ']'; } > $@

# ---- tests ----------------------------------------------------------------------------------
# Under sanitizers the code of tests takes as long to compile as what they test. Its warnings come with -O2.
ifneq ($(SAN),)
$(O)/obj/tests/unit/%.o: private CFLAGS += -O0
endif

$(O)/tests/unit/%: $(O)/obj/tests/unit/%.o $(unit_support) $(library)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcmocka -lssl -lcrypto $(LDLIBS)

# In this test the kernel's and other processes' input comes from recordings: tests/replay/.
replay_sources := $(wildcard tests/replay/*.c)
$(O)/tests/unit/test_replay: $(O)/obj/tests/unit/test_replay.o $(replay_sources:%.c=$(O)/obj/%.o) $(library)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS)
reduce_sources := $(wildcard tests/replay/tools/*.c) $(replay_sources)
$(O)/tests/replay/reduce: $(reduce_sources:%.c=$(O)/obj/%.o) $(library)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# In these tests each call of torture_calls.def goes through a wrapper that can make it fail.
torture_calls := $(shell sed -nE 's/^CALL.[^,]*, ([a-z0-9_]+),.*|^OWN.([a-z_]+).$$/\1\2/p' \
	tests/unit/torture_calls.def)
$(O)/tests/unit/test_torture_%: $(O)/obj/tests/unit/test_torture_%.o $(O)/obj/tests/unit/torture.o \
		$(unit_support) $(library)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $(torture_calls:%=-Wl,--wrap=%) -o $@ $^ -lcmocka -lssl -lcrypto $(LDLIBS)

# These tests run the BPF programs on this kernel and need root.
$(O)/obj/tests/bpf/test_fetch.o: $(O)/gen/tests/bpf/programs/fetches.skel.h
$(O)/obj/tests/bpf/test_arguments.o: $(O)/gen/tests/bpf/programs/arguments.skel.h
$(O)/tests/bpf/%: $(O)/obj/tests/bpf/%.o $(bpf_support) $(library)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS)

# Fuzz targets compile the sources again, with clang's coverage and sanitizers.
fuzz_flags := -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
fuzz_objects := $(patsubst %.c,$(O)/fuzzobj/%.o,$(filter-out agent/main.c,$(sources)))
$(O)/fuzzobj/%.o: %.c | $(generated)
	$(call say,FUZZCC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(CPPFLAGS) $(lib_cflags) -std=gnu17 -w \
		$(subst fuzzer$(comma),fuzzer-no-link$(comma),$(fuzz_flags)) -MMD -MP -c $< -o $@
$(O)/fuzzobj/libfathom.a: $(fuzz_objects) $(proto_objects)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(O)/tests/fuzz/fuzz_replay: $(replay_sources:%.c=$(O)/fuzzobj/%.o)
$(O)/tests/fuzz/%: tests/fuzz/%.c $(O)/fuzzobj/libfathom.a
	$(call say,FUZZ,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(CPPFLAGS) $(lib_cflags) -std=gnu17 -w $(fuzz_flags) -o $@ $< \
		$(filter %.o,$^) $(O)/fuzzobj/libfathom.a $(LDLIBS)

check: all $(unit_tests) $(if $(SAN),,$(bpf_tests))
	$(Q)tests/run --build $(O) unit $(if $(SAN),,bpf scenario)
check-unit: all $(unit_tests)
	$(Q)tests/run --build $(O) unit
check-scenario: all
	$(Q)tests/run --build $(O) scenario
fuzz: $(fuzz_targets)
	$(Q)tests/fuzz/run $(O) $(TIME)
bench: all
	$(Q)tests/bench/run $(O)

performance:
	$(Q)tests/bench/page $(O)
mutation:
	$(Q)tests/mutation/run

# The libraries to link, for tests that compile a program of their own.
ldlibs:
	@echo '$(LDLIBS)'

lint: $(generated)
	$(Q)tests/lint/run '$(CC) $(CPPFLAGS) $(lib_cflags) -std=gnu17 $(warnings)' '$(CLANG_FORMAT)'
format:
	$(Q)git ls-files -co --exclude-standard '*.c' '*.h' | xargs -r $(CLANG_FORMAT) -i

# ---- installing -----------------------------------------------------------------------------
install: all
	$(call say,INSTALL,$(DESTDIR)$(PREFIX))
	$(Q)install -D -m 0755 $(O)/fathom $(DESTDIR)$(PREFIX)/bin/fathom
	$(Q)install -D -m 0644 $(O)/fathom.1 $(DESTDIR)$(PREFIX)/share/man/man1/fathom.1
	$(Q)install -D -m 0644 $(O)/completion/fathom $(DESTDIR)$(PREFIX)/share/bash-completion/completions/fathom
	$(Q)install -D -m 0644 $(O)/completion/_fathom $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_fathom
	$(Q)install -D -m 0644 $(O)/completion/fathom.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/fathom.fish
	$(Q)install -D -m 0644 LICENSE $(DESTDIR)$(PREFIX)/share/doc/fathom/LICENSE
	$(Q)install -D -m 0644 README.md $(DESTDIR)$(PREFIX)/share/doc/fathom/README.md
	$(Q)install -D -m 0644 deploy/fathom.yaml $(DESTDIR)$(PREFIX)/share/doc/fathom/fathom.yaml
	$(Q)install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	$(Q)sed 's|/usr/local/bin|$(PREFIX)/bin|' deploy/fathom.service \
		> $(DESTDIR)$(PREFIX)/lib/systemd/system/fathom.service
	@# What somebody has written there stays.
	$(Q)test -e $(DESTDIR)$(SYSCONFDIR)/fathom/fathom.yaml || \
		install -D -m 0644 deploy/fathom.yaml $(DESTDIR)$(SYSCONFDIR)/fathom/fathom.yaml

# Without a container engine: deploy/README.md. The time in it is that of the last commit.
image_machine := $(if $(filter aarch64,$(machine)),arm64,amd64)
image: $(O)/fathom
	$(call say,IMAGE,$(O)/fathom-image.tar)
	$(Q)rm -rf $(O)/image
	$(Q)export SOURCE_DATE_EPOCH="$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null)}"; \
		deploy/image/rootfs $(O)/fathom $(O)/image && deploy/image/archive --version '$(version)' --revision "$$(git rev-parse HEAD 2>/dev/null)" \
		-o $(O)/fathom-image.tar $(image_machine)=$(O)/image

# Packages: deploy/README.md.
deb: all
	$(call say,DEB,$(O)/fathom.deb)
	$(Q)deploy/deb/build '$(O)' '$(version)' '$(O)/fathom.deb'
rpm: all
	$(call say,RPM,$(O)/fathom.rpm)
	$(Q)deploy/rpm/build '$(O)' '$(version)' '$(O)/fathom.rpm'

clean:
	rm -rf build compile_commands.json

-include $(objects:.o=.d) $(proto_objects:.o=.d) $(fuzz_objects:.o=.d) $(replay_sources:%.c=$(O)/fuzzobj/%.d)
-include $(bpf_programs:bpf/%.bpf.c=$(O)/gen/bpf/%.bpf.d) $(wildcard $(O)/gen/tests/bpf/programs/*.bpf.d)
-include $(patsubst tests/%.c,$(O)/obj/tests/%.d,$(wildcard tests/unit/*.c tests/bpf/*.c tests/replay/*.c tests/replay/tools/*.c))
