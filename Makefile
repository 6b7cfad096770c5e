# SPDX-License-Identifier: Apache-2.0
#
# One makefile, no recursion into folders.  Sources are found by wildcard, so
# a new file needs no edit here, and a component without sources is skipped.
# Everything made is below build/ (build-san/ with SAN=1, build/fuzz/ with FUZZ=1).  'make help' lists
# targets and variables.

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(or $(JOBS),$(shell nproc))
endif

# Under sudo everything runs in a second make, so that whatever happens there
# build/ ends up with the invoking user: no later 'make' trips over root's files.
ifneq ($(if $(filter 0,$(shell id -u)),$(if $(SUDO_UID),$(if $(ROCECAST_SUDO),,yes))),)

goals := $(or $(MAKECMDGOALS),all)
.PHONY: $(goals) as-owner
$(goals): as-owner ; @:
as-owner:
	@trap 'for d in build build-san; do [ ! -e $$d ] || chown -hR "$$SUDO_UID:$$SUDO_GID" $$d; done' EXIT; \
	trap 'exit 130' INT TERM; \
	ROCECAST_SUDO=1 $(MAKE) --no-print-directory $(goals)

else

$(foreach v,SAN FUZZ WERROR V,$(if $(filter-out 0 1,$($v)),$(error $v=$($v): must be 0 or 1)))

CC = gcc
AR = ar
PYTHON = python3
CFLAGS ?= -O2 -g
V ?= 0

ifeq ($(V),1)
Q =
say = @:
else
Q = @
say = @printf '  %-8s%s\n'
endif

B := build$(if $(filter 1,$(SAN)),-san)
OVS_CC := $(CC)
# Of 'make fuzz': for libFuzzer, which comes with clang.
ifeq ($(FUZZ),1)
B := build/fuzz
CC := clang
endif
# Generated files and Open vSwitch are the same in all variants.
GEN := build

WARN := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wwrite-strings -Wformat=2 \
        -Wvla -Wundef -Wpointer-arith -Wcast-qual
ifeq ($(WERROR),1)
WARN += -Werror
endif
ifneq ($(filter 1,$(SAN) $(FUZZ)),)
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif
ifeq ($(FUZZ),1)
SANFLAGS += -fsanitize=fuzzer-no-link
# gcc and clang-tidy warn.
WARN := -w
endif

# What makes a mistake in a program harder to exploit.  Sanitizers and fuzzers have checks of their own;
# the C library's need an optimizer.
PROTECT := -fstack-protector-strong
FORTIFY := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
ifeq ($(SANFLAGS),)
HARDEN := $(PROTECT) $(if $(filter -O1 -O2 -O3 -Os,$(CFLAGS)),$(FORTIFY))
endif
LDFLAGS_HARDEN := -Wl,-z,relro -Wl,-z,now

CPP_BASE := -D_GNU_SOURCE -I. -I$(GEN)
C_BASE := -std=gnu11 -fPIC $(SANFLAGS) $(HARDEN)
# ctl/process/log.c.
LDFLAGS_LOG := -Wl,--wrap=vlog -Wl,--wrap=vlog_rate_limit -Wl,--wrap=vlog_fatal
LDFLAGS_BASE := -Wl,--as-needed $(LDFLAGS_HARDEN) $(LDFLAGS_LOG) $(SANFLAGS)

# libisal exists for these machines only; lib/icrc.c has a portable fallback.
ifneq ($(and $(wildcard /usr/include/isa-l.h),$(filter x86_64 aarch64,$(shell uname -m))),)
CPP_BASE += -DHAVE_ISAL
LIBS_ISAL := -lisal
endif
# Debian keeps libnl's headers in a folder of their own.
CPP_NL := -isystem /usr/include/libnl3

LIBS_CAST := -lz -lcrypto -lxdp -lbpf $(LIBS_ISAL)
LIBS_OVS := -lssl -lcrypto -lm -lpthread
LIBS_CAPS := -lcap-ng -lseccomp
# castd's (docs/scale.md).  Sanitizers bring an allocator of their own.
LIBS_MALLOC := $(if $(SANFLAGS),,-ljemalloc)
LIBS_CHECK = $(shell pkg-config --libs check)

#
# Open vSwitch: only what an OVSDB client needs, from Debian's source package.
#
OVS_TARBALL := /usr/src/openvswitch/openvswitch.tar.gz
OVS_B := $(GEN)/ovs
ifeq ($(OVS_SRC),)
OVS_SRC := $(GEN)/ovs-src
OVS_UNPACKED := $(OVS_SRC)/.unpacked
endif
OVS_READY := $(OVS_B)/.ready

CPP_OVS := $(addprefix -isystem ,$(OVS_B) $(OVS_B)/include $(OVS_B)/lib $(OVS_SRC)/include $(OVS_SRC)/lib)

ovs_objs := aes128 async-append-aio backtrace byteq command-line coverage crc32c csum daemon daemon-unix \
        db-ctl-base dhparams dirs dns-resolve-stub dp-packet dynamic-string entropy fatal-signal guarded-list \
        hash hmap json jsonrpc latch-unix lockfile ofpbuf ovs-rcu ovs-replay ovs-thread ovsdb-condition \
        ovsdb-cs ovsdb-data ovsdb-error ovsdb-idl ovsdb-map-op ovsdb-parser ovsdb-server-idl ovsdb-session \
        ovsdb-set-op ovsdb-types packets poll-loop process random reconnect seq sha1 shash signals simap \
        skiplist smap socket-util socket-util-unix sort sset stream stream-fd stream-replay stream-ssl \
        stream-tcp stream-unix svec syslog-direct syslog-libc syslog-null table timeval token-bucket unicode \
        unixctl util uuid vlog
OVS_OBJS := $(ovs_objs:%=$(OVS_B)/hardened/%.o)
LIBOVS := $(GEN)/libopenvswitch.a

ifneq ($(OVS_UNPACKED),)
$(OVS_UNPACKED): $(OVS_TARBALL)
	$(say) UNPACK $(OVS_SRC)
	$(Q)rm -rf $(OVS_SRC) && mkdir -p $(OVS_SRC)
	$(Q)tar -xzf $< -C $(OVS_SRC) --strip-components=1 --no-same-owner
	$(Q)touch $@

$(OVS_TARBALL):
	@echo "$@ is missing: run 'sudo make deps', or set OVS_SRC" >&2; exit 1
endif

# The paths are those of Debian's packages, so that ovs-appctl and friends find
# the daemons' sockets without options.
$(OVS_READY): $(OVS_UNPACKED)
	$(say) CONFIG $(OVS_B)
	$(Q)rm -rf $(OVS_B) && mkdir -p $(OVS_B)
	$(Q)src=$$(cd $(OVS_SRC) && pwd) && cd $(OVS_B) && { \
	  "$$src"/configure -q --enable-ssl --disable-libcapng --disable-afxdp --disable-dependency-tracking \
	      --prefix=/usr --localstatedir=/var --sysconfdir=/etc CC='$(OVS_CC)' PYTHON3=$(PYTHON) && \
	  env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s include/odp-netlink.h include/odp-netlink-macros.h \
	      lib/dirs.c lib/ovsdb-server-idl.c lib/ovsdb-server-idl.h; \
	} >configure.log 2>&1 || { tail -n 20 configure.log >&2; exit 1; }
	$(Q)touch $@

# A list, not a pattern, for the sources: two are generated into $(OVS_B).
define ovs_rule
$(OVS_B)/hardened/$(1).o: $(OVS_READY)
	$$(say) CC ovs/$(1).c
	@mkdir -p $$(@D)
	$$(Q)$$(OVS_CC) -std=gnu11 -O2 -g -w -fPIC $$(PROTECT) $$(FORTIFY) -D_FILE_OFFSET_BITS=64 -I$(OVS_B) -I$(OVS_B)/include -I$(OVS_B)/lib \
	    -I$(OVS_SRC)/include -I$(OVS_SRC)/lib -I$(OVS_SRC) -c -o $$@ $(2)/lib/$(1).c
endef
$(foreach o,$(filter-out dirs ovsdb-server-idl,$(ovs_objs)),$(eval $(call ovs_rule,$(o),$(OVS_SRC))))
$(foreach o,dirs ovsdb-server-idl,$(eval $(call ovs_rule,$(o),$(OVS_B))))

$(LIBOVS): $(OVS_OBJS)

#
# The registry's typed client, generated from the schema.
#
IDL := $(GEN)/ctl/registry/rocecast-idl
IDL_H := $(if $(wildcard ctl/registry/rocecast.ovsschema),$(IDL).h)
IDLC = PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(OVS_SRC)/python $(PYTHON) $(OVS_SRC)/ovsdb/ovsdb-idlc.in

$(IDL).ovsidl: ctl/registry/rocecast.ovsschema ctl/registry/rocecast-idl.ann $(OVS_READY)
	$(say) IDLC $@
	@mkdir -p $(@D)
	$(Q)$(IDLC) annotate ctl/registry/rocecast.ovsschema ctl/registry/rocecast-idl.ann >$@
$(IDL).h: $(IDL).ovsidl
	$(Q)$(IDLC) c-idl-header $< >$@
$(IDL).c: $(IDL).ovsidl $(IDL).h
	$(Q)$(IDLC) c-idl-source $< >$@

# What readers are told of the schema: a man page, and the end of a document that is read where it is.
COLUMNS := $(addprefix ctl/registry/,columns.py columns.ini rocecast.ovsschema)
SCHEMA_PAGE := $(GEN)/man/rocecast.ovsschema.5
$(SCHEMA_PAGE): man/rocecast.ovsschema.5.in $(COLUMNS)
	$(say) MAN $@
	@mkdir -p $(@D)
	$(Q)$(PYTHON) $(firstword $(COLUMNS)) man $< >$@

docs: $(SCHEMA_PAGE) ## write what documents have from elsewhere: docs/registry.md, tests/bad-input/table.md
	$(Q)$(PYTHON) $(firstword $(COLUMNS)) markdown docs/registry.md >$(GEN)/registry.md
	$(Q)mv $(GEN)/registry.md docs
	$(Q)tests/bad-input/run --write

# What programs say of themselves, and results of where they are from: VERSION, and the commit if
# this is a clone.
VERSION := $(file <VERSION)
$(GEN)/version.h: FORCE
	@mkdir -p $(@D)
	$(Q)v=; [ ! -e .git ] || v=$$(GIT_OPTIONAL_LOCKS=0 git describe --always --dirty --exclude='*' 2>/dev/null); \
	printf '%s\n' "#define ROCECAST_VERSION \"$(VERSION)$${v:++g$$v}\"" '/* For printf(), of a program that has this name. */' \
	    '#define ROCECAST_VERSION_LINE "%s (rocecast) " ROCECAST_VERSION "\n"' >$@.new; \
	if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
.PHONY: FORCE
FORCE:

#
# Components.  lib/ and the verbs programs do not see Open vSwitch's headers.
#
objs = $(patsubst %.c,$(B)/obj/%.o,$(1))

lib_src := $(wildcard lib/*.c)
castd_src := $(wildcard ctl/castd/*.c)
castctl_src := $(wildcard ctl/castctl/*.c)
castbroker_src := ctl/broker/castbroker.c
ctl_src := $(filter-out $(castd_src) $(castctl_src) $(castbroker_src),$(wildcard ctl/*/*.c)) $(wildcard testbed/labs/*.c)
swedge_src := $(wildcard swedge/*.c)
srcagent_src := $(wildcard srcagent/*.c)
castfwd_src := $(wildcard castfwd/*.c)
bench_src := $(wildcard bench/*.c bench/castbench/*.c)
castprobe_src := $(wildcard bench/castprobe/*.c)
castscale_src := $(wildcard bench/castscale/*.c)
api_src := $(wildcard librocecast/*.c)
fake_run_src := $(wildcard tests/bench/*.c)
api_test_src := $(wildcard tests/api/*.c)
fake_verbs_src := $(wildcard tests/api/fake/*.c)
inject_src := $(wildcard tests/faults/*.c)
testbed_src := $(wildcard testbed/castlab/*.c)
unit_src := $(wildcard tests/unit/*.c tests/model/*.c)
sim_src := $(wildcard tests/sim/*.c)
fuzz_src := $(wildcard tests/fuzz/*.c)
net_src := $(wildcard tests/net/test-*.c) tests/net/port-fixture.c
perf_src := $(wildcard tests/perf/*.c)
bench_dp_src := $(wildcard bench/dp/*.c)
castcrowd_src := $(addprefix tests/net/,castcrowd.c command-line.c model-host.c)
castcm_src := $(addprefix tests/net/,castcm.c command-line.c model-host.c)
castmodel_src := $(filter-out $(net_src) $(addprefix tests/net/,castcm.c castcrowd.c command-line.c),$(wildcard tests/net/*.c)) bench/castbench/registry.c \
        bench/castbench/content.c bench/castbench/gap.c
verbs_src := $(wildcard tests/verbs/*.c)
examples_src := $(wildcard examples/*.c)
blockdev_src := $(wildcard examples/blockdev/*.c tests/blockdev/*.c)
# nbdkit's header is in a package of its own; without it there is no disk to serve.
NBDKIT := $(wildcard /usr/include/nbdkit-plugin.h)
ifeq ($(NBDKIT),)
blockdev_src := $(filter-out examples/blockdev/plugin.c,$(blockdev_src))
endif

plain_src := $(sort $(lib_src) $(bench_src) $(castprobe_src) $(fake_run_src) $(verbs_src) $(net_src) $(castmodel_src) $(castcrowd_src) $(castcm_src) $(api_test_src) \
        $(fake_verbs_src) $(inject_src) $(bench_dp_src) $(examples_src) $(blockdev_src))
ovs_user_src := $(ctl_src) $(castd_src) $(castctl_src) $(castbroker_src) $(swedge_src) $(srcagent_src) $(castfwd_src) $(testbed_src) $(unit_src) \
        $(api_src) $(fuzz_src) $(sim_src) $(perf_src) $(castscale_src)

LIBCAST := $(if $(lib_src),$(B)/libcast.a)
LIBCTL := $(if $(IDL_H),$(B)/libctl.a)
LIBSWEDGE := $(if $(filter-out swedge/main.c,$(swedge_src)),$(B)/libswedge.a)
LIBCASTFWD := $(if $(filter-out castfwd/main.c,$(castfwd_src)),$(B)/libcastfwd.a)
LIBCASTD := $(if $(filter-out ctl/castd/castd.c,$(castd_src)),$(B)/libcastd.a)
LIBBENCH := $(if $(filter-out bench/castbench/castbench.c,$(bench_src)),$(B)/libbench.a)
LIBSRCAGENT := $(if $(filter-out srcagent/main.c,$(srcagent_src)),$(B)/libsrcagent.a)
CLIENT := $(LIBCTL) $(LIBCAST) $(LIBOVS)

# librocecast: own objects first, so that fatal-signal.o is found before libopenvswitch's.
# API_VERSION is in its soname: it changes when programs have to be built again for a new library.
API_VERSION := 0
LIBAPI := $(if $(api_src),$(B)/librocecast.so)
$(B)/librocecast.so: $(B)/librocecast.so.$(API_VERSION)
	$(Q)ln -sfn $(<F) $@
$(B)/librocecast.so.$(API_VERSION): $(call objs,$(api_src)) $(CLIENT) librocecast/rocecast.map
	$(say) LD $@
	$(Q)$(CC) -shared $(LDFLAGS_BASE) $(LDFLAGS) -o $@ -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,--wrap=socket $(API_DEFS) \
	    -Wl,--version-script=librocecast/rocecast.map $(filter %.o,$^) \
	    -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS_CAST) $(LIBS_OVS)
# With sanitizers the program brings their library.
API_DEFS := $(if $(SANFLAGS),,-Wl,-z,defs)
# Programs find it in the folder above, installed ones in the lib beside theirs.
LINK_API := -L$(B) -lrocecast -Wl,-rpath,'$$$$ORIGIN/..:$$$$ORIGIN/../lib'

$(B)/libcast.a: $(call objs,$(lib_src))
$(B)/libctl.a: $(call objs,$(ctl_src)) $(B)/obj/gen/rocecast-idl.o
$(B)/libswedge.a: $(call objs,$(filter-out swedge/main.c,$(swedge_src)))
$(B)/libcastfwd.a: $(call objs,$(filter-out castfwd/main.c,$(castfwd_src)))
$(B)/libcastd.a: $(call objs,$(filter-out ctl/castd/castd.c,$(castd_src)))
$(B)/libbench.a: $(call objs,$(filter-out bench/castbench/castbench.c,$(bench_src)))
$(B)/libsrcagent.a: $(call objs,$(filter-out srcagent/main.c,$(srcagent_src)))

# program(name, objects' sources, archives, libraries); no sources, no program
PROGRAMS :=
define program
ifneq ($(strip $(2)),)
PROGRAMS += $(B)/bin/$(1)
$(B)/bin/$(1): $(call objs,$(2)) $(3)
$(B)/bin/$(1): LIBS = $(4)
endif
endef
$(eval $(call program,castd,$(wildcard ctl/castd/castd.c),$(LIBCASTD) $(CLIENT),$(LIBS_CAST) $(LIBS_OVS) $(LIBS_CAPS) $(LIBS_MALLOC)))
$(eval $(call program,castbroker,$(castbroker_src),$(CLIENT),$(LIBS_CAST) $(LIBS_OVS) $(LIBS_CAPS)))
$(eval $(call program,castctl,$(castctl_src),$(CLIENT),-lyaml $(LIBS_CAST) $(LIBS_OVS) $(LIBS_CAPS)))
$(eval $(call program,swedge,$(wildcard swedge/main.c),$(LIBSWEDGE) $(CLIENT),$(LIBS_CAST) $(LIBS_OVS) $(LIBS_CAPS)))
$(eval $(call program,srcagent,$(wildcard srcagent/main.c),$(LIBSRCAGENT) $(LIBSWEDGE) $(CLIENT),$(LIBS_CAST) $(LIBS_OVS) $(LIBS_CAPS)))
$(eval $(call program,castfwd,$(wildcard castfwd/main.c),$(LIBCASTFWD) $(CLIENT),$(LIBS_CAST) $(LIBS_OVS) $(LIBS_CAPS)))
$(eval $(call program,castbench,bench/castbench/castbench.c,$(LIBBENCH) $(LIBCAST) $(LIBAPI),$(LINK_API) -lrdmacm -libverbs $(LIBS_ISAL) -lz -ljansson -lm))
$(eval $(call program,castprobe,$(castprobe_src),$(LIBBENCH) $(LIBCAST),-libverbs $(LIBS_ISAL) -lz -ljansson))
$(eval $(call program,castscale,$(castscale_src),$(LIBBENCH) $(CLIENT),$(LIBS_CAST) $(LIBS_OVS)))
$(eval $(call program,castlab,$(testbed_src),$(CLIENT),-lnl-route-3 -lnl-3 -lyaml $(LIBS_CAST) $(LIBS_OVS)))
$(eval $(call program,castmodel,$(castmodel_src) tests/model/rc-endpoint.c,$(LIBCAST) $(LIBAPI),$(LINK_API) $(LIBS_CAST)))
$(eval $(call program,apihost,$(api_test_src),$(LIBAPI),$(LINK_API) -lpthread))
$(foreach s,$(examples_src),$(eval $(call program,$(basename $(notdir $(s))),$(s),,-lrdmacm -libverbs)))
$(eval $(call program,blockdev-replica,$(filter %/replica.c %/link.c,$(blockdev_src)),$(LIBAPI),$(LINK_API) -lrdmacm -libverbs))
$(eval $(call program,blockdev-liar,tests/blockdev/liar.c,,-lrdmacm -libverbs))
$(foreach p,joinrc rcgen,$(eval $(call program,$(p),$(filter tests/verbs/$(p)%,$(verbs_src)),,-libverbs)))

# The source of a replicated disk, with replicas that are a model.
BLOCK_MODEL := $(B)/tests/blockdev-model
$(BLOCK_MODEL): $(call objs,tests/blockdev/model.c $(addprefix examples/blockdev/,disk.c replicas.c resync.c))
$(BLOCK_MODEL): LIBS = -lpthread

# What nbdkit loads; it finds librocecast beside it.
NBD_PLUGIN := $(if $(NBDKIT),$(B)/nbdkit-rocecast-plugin.so)
$(B)/nbdkit-rocecast-plugin.so: $(call objs,$(filter-out %/replica.c tests/%,$(blockdev_src))) $(LIBAPI)
	$(say) LD $@
	$(Q)$(CC) -shared $(LDFLAGS_BASE) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(B) -lrocecast -Wl,-rpath,'$$ORIGIN' -lrdmacm -libverbs

# Stands in for libibverbs in tests of librocecast, by its name.
FAKE_VERBS := $(if $(api_test_src),$(B)/tests/libibverbs.so.1)
$(FAKE_VERBS): $(call objs,$(fake_verbs_src)) tests/api/fake/ibverbs.map
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(LDFLAGS_BASE) $(LDFLAGS) -o $@ -Wl,-soname,$(@F) \
	    -Wl,--version-script=tests/api/fake/ibverbs.map $(filter %.o,$^)

# Preloaded into daemons, whose calls it makes fail.
INJECT := $(if $(inject_src),$(B)/tests/inject.so)
$(INJECT): $(call objs,$(inject_src))
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(LDFLAGS_BASE) $(LDFLAGS) -o $@ $^

# castbench with runs that are made up.
FAKE_BENCH := $(if $(fake_run_src),$(B)/tests/castbench)
$(FAKE_BENCH): $(call objs,bench/castbench/castbench.c $(fake_run_src)) $(LIBBENCH) $(LIBCAST)
$(FAKE_BENCH): LIBS = $(LIBS_ISAL) -ljansson -lm

# A program of several Python files is one executable archive of them.
SCRIPTS := $(B)/bin/castbench-report
report_src := $(wildcard bench/castbench-report/*.py bench/castbench-report/*.css)
$(B)/bin/castbench-report: $(report_src) $(GEN)/version.h Makefile
	$(say) ZIPAPP $@
	@mkdir -p $(@D)
	$(Q)rm -rf $(B)/castbench-report && mkdir $(B)/castbench-report && cp $(report_src) $(B)/castbench-report
	$(Q)sed -n 's/^#define ROCECAST_VERSION /VERSION = /p' $(GEN)/version.h >$(B)/castbench-report/version.py
	$(Q)$(PYTHON) -m zipapp -p '/usr/bin/env python3' -o $@ $(B)/castbench-report

# The examples in docs/api.md are its fenced blocks "```c NAME.c".
EXAMPLES := $(if $(api_src),$(addprefix $(B)/bin/api-,source receiver replica))
PROGRAMS += $(EXAMPLES)
.SECONDARY: $(patsubst $(B)/bin/api-%,$(GEN)/examples/%.c,$(EXAMPLES))
$(GEN)/examples/%.c: docs/api.md
	@mkdir -p $(@D)
	$(Q)awk '/^```/ { on = $$0 == "```c $*.c"; next } on' $< >$@
$(B)/obj/examples/%.o: $(GEN)/examples/%.c librocecast/rocecast.h
	$(say) CC $<
	@mkdir -p $(@D)
	$(Q)$(CC) -Ilibrocecast $(C_BASE) $(CFLAGS) $(WARN) -Wno-unused-result -c -o $@ $<
$(EXAMPLES): $(B)/bin/api-%: $(B)/obj/examples/%.o $(LIBAPI)
$(eval $(EXAMPLES): LIBS = $(LINK_API) -libverbs)

UNIT := $(if $(unit_src),$(B)/tests/unit)
$(B)/tests/unit: $(call objs,$(unit_src)) $(LIBSWEDGE) $(LIBSRCAGENT) $(LIBCASTFWD) $(LIBBENCH) $(LIBCASTD) $(CLIENT)
$(B)/tests/unit: LIBS = $(LIBS_CHECK) $(LIBS_CAST) $(LIBS_OVS) $(LIBS_CAPS)

# Not a unit test: groups in virtual time, by the thousand.
CASTSIM := $(if $(sim_src),$(B)/tests/castsim)
# The files with known defects are compiled for it alone: in no other program can any be switched on.
defect_src := $(shell grep -lw DEFECT lib/*.c swedge/*.c srcagent/*.c)
defect_objs := $(defect_src:%.c=$(B)/obj/defects/%.o)
$(B)/tests/castsim: $(defect_objs) $(call objs,$(sim_src) $(wildcard tests/model/*.c)) $(LIBSWEDGE) $(LIBSRCAGENT) $(CLIENT)
$(B)/tests/castsim: LIBS = $(LIBS_CAST) $(LIBS_OVS)

# Nor this: packets whose instructions are counted.
DP_PACKETS := $(if $(perf_src),$(B)/tests/dp-packets)
$(B)/tests/dp-packets: $(call objs,$(perf_src) tests/fuzz/assertions.c \
        tests/model/sent-frames.c $(addprefix tests/unit/,agent-fixture.c node-fixture.c path-fixture.c \
                                                    transit-fixture.c)) $(LIBSWEDGE) $(LIBSRCAGENT) $(CLIENT)
$(B)/tests/dp-packets: LIBS = $(LIBS_CAST) $(LIBS_OVS)

# What the data plane's benchmark compares with and measures by: a program for each file.
BENCH_DP := $(bench_dp_src:bench/dp/%.c=$(B)/tests/dp-%)
$(BENCH_DP): $(B)/tests/dp-%: $(B)/obj/bench/dp/%.o $(LIBCAST)
$(BENCH_DP): LIBS = $(LIBS_CAST)

# Fuzz targets, tests/fuzz/fuzz-NAME.c: with FUZZ=1 for libFuzzer, otherwise programs that replay inputs.
fuzz_names := $(patsubst tests/fuzz/fuzz-%.c,%,$(filter tests/fuzz/fuzz-%,$(fuzz_src)))
FUZZ_DIR := $(B)$(if $(filter 1,$(FUZZ)),,/tests/fuzz)
FUZZERS := $(addprefix $(FUZZ_DIR)/,$(fuzz_names))
FUZZ_MAIN := $(if $(filter 1,$(FUZZ)),,$(B)/obj/tests/fuzz/replay.o)
fuzz_lib_src := $(filter-out tests/fuzz/fuzz-% tests/fuzz/replay.c,$(fuzz_src)) \
        $(addprefix tests/unit/,agent-fixture.c cm-check.c modes-fixture.c node-fixture.c outer-fixture.c parse-check.c \
        reverse-compare.c reverse-model.c transit-fixture.c usid-fixture.c uso-frames.c) tests/model/sent-frames.c \
        $(addprefix testbed/castlab/,parameters.c topology.c topology-paths.c)
$(B)/libfuzz.a: $(call objs,$(fuzz_lib_src))
$(FUZZERS): $(FUZZ_DIR)/%: $(B)/obj/tests/fuzz/fuzz-%.o $(FUZZ_MAIN) $(B)/libfuzz.a $(LIBSWEDGE) $(LIBSRCAGENT) \
        $(LIBCASTFWD) $(CLIENT)
$(FUZZERS): LIBS = -lyaml $(LIBS_CAST) $(LIBS_OVS) $(if $(FUZZ_MAIN),,-fsanitize=fuzzer)

NET := $(if $(net_src),$(B)/tests/net $(B)/tests/castcrowd $(B)/tests/castcm)
$(B)/tests/castcrowd: $(call objs,$(castcrowd_src) tests/model/rc-endpoint.c) $(LIBCAST)
$(B)/tests/castcrowd: LIBS = $(LIBS_CAST)
$(B)/tests/castcm: $(call objs,$(castcm_src) $(addprefix tests/model/,cm-kernel.c rc-endpoint.c)) $(LIBCAST)
$(B)/tests/castcm: LIBS = $(LIBS_CAST)
$(B)/tests/net: $(call objs,$(net_src) $(addprefix tests/unit/,hex.c uso-frames.c)) $(LIBCAST)
$(B)/tests/net: LIBS = $(LIBS_CHECK) $(LIBS_CAST)

$(PROGRAMS) $(FAKE_BENCH) $(BLOCK_MODEL) $(B)/tests/unit $(NET) $(CASTSIM) $(DP_PACKETS) $(BENCH_DP) $(FUZZERS):
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) -pie $(LDFLAGS_BASE) $(LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS)

# Afresh each time: 'ar r' would keep members whose source has gone.
%.a:
	$(say) AR $@
	@mkdir -p $(@D)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

compile = $(Q)$(CC) $(CPP_BASE) $(INCS) $(CPPFLAGS) $(C_BASE) $(CFLAGS) $(WARN) -MMD -MP -c -o $@ $<
$(call objs,$(ovs_user_src)) $(defect_objs): INCS = $(CPP_OVS)
$(call objs,$(blockdev_src)): INCS = -Ilibrocecast
$(call objs,$(testbed_src)): INCS = $(CPP_OVS) $(CPP_NL)
$(call objs,$(plain_src) $(ovs_user_src)): | $(GEN)/version.h
$(call objs,$(ovs_user_src)) $(defect_objs): | $(OVS_READY) $(IDL_H)

$(B)/obj/%.o: %.c Makefile
	$(say) CC $<
	@mkdir -p $(@D)
	$(compile)
$(B)/obj/defects/%.o: override CPPFLAGS += -DROCECAST_DEFECTS
$(B)/obj/defects/%.o: %.c Makefile
	$(say) CC "$< (defects)"
	@mkdir -p $(@D)
	$(compile)
$(B)/obj/gen/%.o: $(GEN)/ctl/registry/%.c $(GEN)/ctl/registry/%.h Makefile
	$(say) CC $<
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPP_BASE) $(CPP_OVS) $(C_BASE) $(CFLAGS) -w -c -o $@ $<

-include $(patsubst %.o,%.d,$(call objs,$(plain_src) $(ovs_user_src)) $(defect_objs))

#
# Targets
#
.PHONY: all check check-long unit net e2e walk demo docs install uninstall lint lint-c lint-scripts format clean deps help

all: $(LIBCAST) $(LIBCTL) $(LIBOVS) $(LIBAPI) $(PROGRAMS) $(NBD_PLUGIN) $(SCRIPTS) $(FAKE_VERBS) $(FAKE_BENCH) $(INJECT) $(BLOCK_MODEL) $(SCHEMA_PAGE) ## build all programs and libraries

deps: ## install missing Debian packages (root)
	$(Q)deps/install

CONFORMANCE = tests/conformance/run$(if $(filter 1,$(V)), -v)

# What both 'make check' and 'make conformance' run: tiers that tests of the draft's requirements are in.
# castsim takes seeds that are always the same, and others.
SIM_TIERS = sim='build/tests/castsim --count 200 --fresh 50' sim-defects='build/tests/castsim --defects' \
    sim-compare='build/tests/castsim $(COMPARE)' \
    sim-congestion='build/tests/castsim --congestion' sim-paths='build/tests/castsim --paths'
ALONE_TIERS = net=tests/net/run ctl=tests/ctl/run api=tests/api/run

# Library and header tests above are evaluated when make starts, hence a second make once the
# packages are there.
check: ## install, build and run every tier (what CI runs)
	$(Q)deps/install
	+$(Q)$(MAKE) --no-print-directory all unit-built net-built sim-built bench-dp-built
	+$(Q)$(MAKE) --no-print-directory SAN=1 unit-built fuzzers sim-built
	+$(Q)! tests/fuzz/has-libfuzzer || $(MAKE) --no-print-directory FUZZ=1 fuzzers
	$(Q)$(FORKING) tests/summary --beside unit-san='build-san/tests/unit --suites' unit='build/tests/unit --suites' \
	    $(SIM_TIERS) sim-san='build-san/tests/castsim --count 40 --fresh 20' fuzz='tests/fuzz/check 10' \
	    --alone $(ALONE_TIERS) doctor=tests/doctor/run install=tests/install/run wireshark=tests/wireshark/run \
	    bench=tests/bench/run lab=tests/lab/run bad-input=tests/bad-input/run vm=tests/vm/run e2e=tests/e2e/run \
	    blockdev=tests/blockdev/run \
	    walk=tests/walk/run --last bench-dp='bench/dp/run --quick' conformance='$(CONFORMANCE)'

# castsim and fuzzers fork from a process with all memory that AddressSanitizer keeps of what was freed; with
# its default, half a gigabyte, that takes most of the time.
FORKING := ASAN_OPTIONS=quarantine_size_mb=8

# The longer forms of tiers of 'make check', and what is too long for it, one a line.
LONG_TIERS = \
    sim-long='build-san/tests/castsim --seeds 1..2000 --fresh 3000' \
    sim-compare-long='build/tests/castsim --compare' \
    ctl-scale=tests/ctl/scale \
    ctl-prometheus=tests/ctl/prometheus \
    ctl-killed='tests/ctl/run --all castd_is_killed server_is_killed swedge_is_killed srcagent_is_killed' \
    net-joins=tests/net/joins \
    net-connects=tests/net/connects \
    net-joining-long='env LONG=1 tests/net/run joining' \
    net-congestion-long='env LONG=1 tests/net/run congestion' \
    net-paths-long='env LONG=1 tests/net/run probing switching' \
    bench-dp-long='bench/dp/run --long 600' \
    deb=tests/deb/run \
    fuzz-long='tests/fuzz/run 600 $(fuzz_names)' \
    e2e-long='env KERNEL=6.12 LONG=1 tests/e2e/run'

check-long: develop-deps deb-deps ## what is too long for 'make check': more seeds, fuzzing, e2e on Linux 6.12 (hours)
	$(Q)deps/install
	+$(Q)$(MAKE) --no-print-directory all net-built sim-built bench-dp-built
	+$(Q)$(MAKE) --no-print-directory SAN=1 sim-built
	+$(Q)$(MAKE) --no-print-directory FUZZ=1 fuzzers
	$(Q)tests/summary $(LONG_TIERS)

.PHONY: unit-built net-built
net-built: $(NET)

unit-built: $(UNIT)
ifeq ($(UNIT),)
	@echo "tests/unit has no tests" >&2; exit 1
endif

unit: unit-built ## unit tests; SAN=1 for ASan and UBSan
	$(Q)tests/summary unit='$(B)/tests/unit --suites'

.PHONY: sim sim-built sim-defects sim-compare sim-congestion sim-paths
sim-built: $(CASTSIM)

SEEDS = 1..500
FRESH = 100
sim: sim-built ## castsim: groups in virtual time, SEEDS=1..500, FRESH=100 others; SAN=1 for ASan and UBSan
	$(Q)tests/summary sim='$(CASTSIM) --seeds $(SEEDS) --fresh $(FRESH)'

sim-defects: sim-built ## castsim finds each known defect
	$(Q)tests/summary sim-defects='$(CASTSIM) --defects'

# Not all runs of the table in docs/simulation.md: it takes minutes.
COMPARE := --compare --policy default --runs 16
sim-compare: sim-built ## castsim: does the default reach 0.9 of an ideal aggregator's goodput?
	$(Q)tests/summary sim-compare='$(CASTSIM) $(COMPARE)'

sim-congestion: sim-built ## castsim: does control of congestion reach what docs/simulation.md says?
	$(Q)tests/summary sim-congestion='$(CASTSIM) --congestion'

sim-paths: sim-built ## castsim: is each fault of a fabric found, and none where there is none?
	$(Q)tests/summary sim-paths='$(CASTSIM) --paths'

.PHONY: perf perf-built
perf-built: $(DP_PACKETS)

perf: perf-built ## instructions per packet of the data plane (valgrind); AGAINST=an older dp-packets
	$(Q)tests/perf/instructions $(AGAINST:%=--against %) $(DP_PACKETS)

e2e: all net-built ## end-to-end tests on real soft-RoCE
	$(Q)tests/summary e2e=tests/e2e/run

net: all net-built ## real daemons and ports in network namespaces, without RDMA (root)
	$(Q)tests/summary net=tests/net/run

.PHONY: conformance
conformance: all unit-built net-built sim-built ## is each requirement of docs/conformance.md proven by a test (root)
	$(Q)status=0; \
	tests/summary --missing --beside unit='$(B)/tests/unit --suites' $(SIM_TIERS) \
	    --alone $(ALONE_TIERS) e2e=tests/e2e/run || status=1; \
	$(CONFORMANCE) && exit $$status

walk: all ## the commands of README and docs, as a reader would type them (root)
	$(Q)tests/summary walk=tests/walk/run

.PHONY: fuzzers fuzz fuzz-run fuzz-regress fuzz-corpus
fuzzers: $(FUZZERS)

fuzz: develop-deps $(LIBOVS) $(IDL_H) ## fuzz targets with libFuzzer (clang), in build/fuzz
	+$(Q)$(MAKE) --no-print-directory FUZZ=1 fuzzers

SECONDS = 20
fuzz-run: fuzz ## fuzz for SECONDS=20 each, all or TARGET=NAME; what crashes stays in build/fuzz/crashes
	$(Q)tests/fuzz/run $(SECONDS) $(or $(TARGET),$(fuzz_names))

fuzz-regress: ## replay seeds, corpus and crashes through the fuzz targets (gcc, ASan, UBSan)
	+$(Q)$(MAKE) --no-print-directory SAN=1 fuzzers
	$(Q)tests/summary fuzz=tests/fuzz/replay

fuzz-corpus: fuzz ## make tests/fuzz/corpus/*/found again: as few inputs as possible of what fuzz-run found
	$(Q)tests/fuzz/minimise $(or $(TARGET),$(fuzz_names))

demo: ## the whole thing in a few minutes (KERNEL=6.12, ACCEL=kvm|tcg)
	$(Q)deps/install
	+$(Q)$(MAKE) --no-print-directory all
	$(Q)DEMO_RESULTS=build/demo testbed/demo/run.sh

.PHONY: demo-block
demo-block: ## a replicated disk, beside md RAID1 over nvmet-rdma, on real soft-RoCE (KERNEL=6.12, ACCEL=kvm|tcg)
	$(Q)deps/install
	+$(Q)$(MAKE) --no-print-directory all
	$(Q)testbed/demo/block.sh

.PHONY: bench
bench: ## the standard benchmark, on real soft-RoCE (KERNEL=6.12, ACCEL=kvm|tcg): up to 40 minutes
	$(Q)deps/install
	+$(Q)$(MAKE) --no-print-directory all
	$(Q)bench/standard/run.sh

.PHONY: bench-dp bench-dp-built
bench-dp-built: $(BENCH_DP)

bench-dp: all bench-dp-built ## CPU time per copy of the data plane, natively (root; CASES=, REPEATS=5, AGAINST=another build)
	$(Q)bench/dp/run $(REPEATS:%=--repeats %) $(AGAINST:%=--against %) $(CASES)

#
# Installation.  One list, of files below $(PREFIX), says what there is to install and to remove.
# All programs are in one folder: castlab starts those that are beside it.
#
PREFIX = /usr/local
# Below PREFIX; Debian's packages have a folder for each architecture.
LIBDIR = lib
DEST = $(DESTDIR)$(PREFIX)
own_dirs := $(addprefix share/rocecast/,demo topologies vm) share/rocecast share/doc/rocecast
man_dir = share/man/man$(subst .,,$(suffix $(1)))
inst_programs := $(addprefix bin/,castd castctl castlab castbench castbench-report castprobe castscale swedge srcagent castfwd castbroker)
inst_units := $(patsubst systemd/%.in,lib/systemd/system/%,$(wildcard systemd/*.in))
# The daemons' user and their folder, for systemd-sysusers and systemd-tmpfiles.
inst_confs := $(patsubst systemd/%.conf,lib/%.d/rocecast.conf,$(wildcard systemd/*.conf))
inst_completions := $(patsubst completion/%,share/bash-completion/completions/%,$(wildcard completion/*))
inst_topologies := $(patsubst testbed/%,share/rocecast/%,$(wildcard testbed/topologies/*.yaml))
# All but the two that are about the source tree.
docs := $(filter-out docs/README.md docs/where-to-change.md,$(wildcard docs/*.md))
inst_scripts := $(patsubst testbed/%,share/rocecast/%,$(wildcard testbed/vm/* testbed/demo/*))
inst_docs := $(docs:docs/%=share/doc/rocecast/%)
inst_man := $(foreach m,$(patsubst %.in,%,$(notdir $(wildcard man/*))),$(call man_dir,$(m))/$(m))
inst_lib := $(addprefix $(LIBDIR)/,librocecast.so.$(API_VERSION) librocecast.so pkgconfig/rocecast.pc) include/rocecast.h
# Where Debian's Wireshark looks below /usr.
inst_dissector = lib/$(shell $(CC) -print-multiarch)/wireshark/plugins/rocecast.lua
installed = $(inst_programs) $(inst_lib) $(inst_units) $(inst_confs) $(inst_completions) $(inst_topologies) $(inst_scripts) $(inst_docs) \
        $(inst_man) share/rocecast/rocecast.ovsschema $(inst_dissector)

# Units and the pkg-config file have paths in them.  DESTDIR may have spaces, PREFIX may not.
prefix_ok := $(and $(filter 1,$(words $(PREFIX))),$(filter /%,$(PREFIX)))
with_paths = sed 's,@PREFIX@,$(PREFIX),; s,@LIBDIR@,$(LIBDIR),; s,@VERSION@,$(VERSION),; s,@bindir@,$(PREFIX)/bin,; \
        s,@datadir@,$(PREFIX)/share/rocecast,' $(1) >"$(DEST)/$(2)" && chmod 644 "$(DEST)/$(2)"
# Programs find a new library in these only if the linker's cache has it.
ldconfig = case '$(DESTDIR)$(PREFIX)' in /usr | /usr/local) \
        [ ! -w /etc/ld.so.cache ] || PATH=$$PATH:/usr/sbin:/sbin ldconfig ;; esac

install: all ## install below PREFIX (/usr/local), in DESTDIR if that is set
	$(if $(prefix_ok),,$(error PREFIX '$(PREFIX)': must be an absolute path without spaces))
	$(say) INSTALL "$(DEST)"
	$(Q)for d in $(sort $(dir $(installed))); do install -d "$(DEST)/$$d" || exit; done
	$(Q)install -m 755 $(inst_programs:%=$(B)/%) "$(DEST)/bin"
	$(Q)install -m 644 $(B)/librocecast.so.$(API_VERSION) "$(DEST)/$(LIBDIR)"
	$(Q)ln -sfn librocecast.so.$(API_VERSION) "$(DEST)/$(LIBDIR)/librocecast.so"
	$(Q)install -m 644 librocecast/rocecast.h "$(DEST)/include"
	$(Q)$(call with_paths,librocecast/rocecast.pc.in,$(LIBDIR)/pkgconfig/rocecast.pc)
	$(Q)install -m 644 ctl/registry/rocecast.ovsschema "$(DEST)/share/rocecast"
	$(Q)install -m 644 testbed/topologies/*.yaml "$(DEST)/share/rocecast/topologies"
	$(Q)for s in $(inst_scripts); do install -m 755 testbed/$${s#share/rocecast/} "$(DEST)/$$s" || exit; done
	$(Q)install -m 644 wireshark/rocecast.lua "$(DEST)/$(inst_dissector)"
	$(Q)install -m 644 $(docs) "$(DEST)/share/doc/rocecast"
	$(Q)install -m 644 completion/* "$(DEST)/share/bash-completion/completions"
	$(Q)for m in $(inst_man); do \
	    f=man/$${m##*/}; [ -e $$f ] || f=$(GEN)/$$f; install -m 644 $$f "$(DEST)/$$m" || exit; done
	$(Q)for c in sysusers tmpfiles; do install -m 644 systemd/$$c.conf "$(DEST)/lib/$$c.d/rocecast.conf" || exit; done
	$(Q)for u in $(inst_units); do $(call with_paths,systemd/$${u##*/}.in,$$u) || exit; done
	$(Q)$(ldconfig)

uninstall: ## remove what install has made
	$(if $(prefix_ok),,$(error PREFIX '$(PREFIX)': must be an absolute path without spaces))
	$(Q)for f in $(installed); do rm -f "$(DEST)/$$f" || exit; done
	$(Q)for d in $(own_dirs); do \
	    [ ! -d "$(DEST)/$$d" ] || rmdir --ignore-fail-on-non-empty "$(DEST)/$$d"; done
	$(Q)$(ldconfig)

.PHONY: deb deb-deps
deb: deb-deps ## Debian packages, in build/deb
	$(Q)debian/build

deb-deps:
	$(Q)deps/install
	$(Q)deps/install deps/deb.txt

own_c := $(plain_src) $(ovs_user_src)
own_ch := $(own_c) $(wildcard lib/*.h ctl/*/*.h swedge/*.h srcagent/*.h castfwd/*.h bench/*/*.h testbed/*/*.h librocecast/*.h \
        examples/*/*.h \
        tests/*/*.h)
TIDY = clang-tidy --quiet --warnings-as-errors='*'
tidy_flags := -std=gnu11 $(CPP_BASE) -Ilibrocecast

lint: develop-deps lint-c lint-scripts ## format, static analysis, layering
	@echo "lint: clean"

.PHONY: develop-deps lint-c lint-scripts
develop-deps:
	$(Q)deps/install deps/develop.txt

lint-c: develop-deps $(OVS_READY) $(IDL_H) $(GEN)/version.h
	$(say) FORMAT
	$(Q)clang-format --dry-run -Werror $(own_ch)
	$(say) LAYERS
	$(Q)tests/lint-layers
	$(say) CPPCHECK
	$(Q)cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr -D__linux__ -D_GNU_SOURCE -I. \
	    --library=tests/lint-cppcheck.cfg --suppress=varFuncNullUB \
	    --enable=warning,performance,portability --suppress=missingInclude \
	    --suppress=normalCheckLevelMaxBranches $(own_c)
	$(say) TIDY
	$(Q)printf '%s\n' $(plain_src) | xargs -r -P $$(nproc) -I{} $(TIDY) {} -- $(tidy_flags)
	$(Q)printf '%s\n' $(ovs_user_src) | xargs -r -P $$(nproc) -I{} $(TIDY) {} -- $(tidy_flags) $(CPP_OVS) $(CPP_NL)

lint-scripts: develop-deps
	$(say) SHELL
	$(Q)find . -path './build*' -prune -o -path ./.git -prune -o -type f -exec grep -lIE '^#! ?/bin/(ba)?sh' {} + | \
	    xargs -r shellcheck -x
	$(say) LUA
	$(Q)luacheck --quiet wireshark

format: ## rewrite the C sources in the house style
	$(Q)clang-format -i $(own_ch)

clean: ## remove build/ and build-san/
	$(Q)rm -rf build build-san

help: ## this text
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 21
	@echo "  V=1 commands shown; WERROR=1 warnings are errors; SAN=1 sanitizers; JOBS=N; OVS_SRC=DIR Open vSwitch sources"

endif
