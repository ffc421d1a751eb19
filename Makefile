# metatopics: `make demo` and `make check` are the two commands; `make help` lists the rest.
# configure finds, config.mk remembers, this file builds: explicit lists of files.
# BUILD=folder keeps another build (another compiler, sanitizers) beside the usual one.
BUILD = build
.DEFAULT_GOAL = all

ifneq ($(filter-out help deps clean distclean format,$(or $(MAKECMDGOALS),all)),)
-include config.mk
endif

# ---- the program -------------------------------------------------------------------
base_SRC = src/base/log.c src/base/progress.c src/base/memory.c src/base/random.c \
	src/base/hash.c src/base/stop.c src/base/rows.c
comm_SRC = src/comm/comm.c
deck_SRC = src/deck/command_line.c src/deck/nearest.c
store_SRC =
corpus_SRC =
lda_SRC =
knn_SRC =
umap_SRC =
hdbscan_SRC =
backend_SRC =
report_SRC = src/report/record.c
stage_SRC =
LIB_SRC = $(base_SRC) $(comm_SRC) $(deck_SRC) $(store_SRC) $(corpus_SRC) $(lda_SRC) \
	$(knn_SRC) $(umap_SRC) $(hdbscan_SRC) $(backend_SRC) $(report_SRC) $(stage_SRC)

# ---- tests: tests/NAME.c, the ranks are in its first comment -------------------------
TESTS = test_comm

WARNINGS = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
override CPPFLAGS += -Isrc -Iinclude $(CPPFLAGS_FOUND) -D_GNU_SOURCE -DMT_VERSION='"$(VERSION)"'
COMPILE = $(CC) -std=gnu11 $(WARNINGS) $(CPPFLAGS) $(CFLAGS) $(SANITIZE) -fopenmp -MMD -MP
LINK = $(CC) $(CFLAGS) $(SANITIZE) -fopenmp $(LDFLAGS)
LIBS = $(LIBS_FOUND) -lz -lm -ldl

LIB = $(BUILD)/libmetatopics.a
LIB_OBJ = $(LIB_SRC:%.c=$(BUILD)/%.o)
TEST_PROGRAMS = $(TESTS:%=$(BUILD)/tests/%)

# V=1 shows whole commands
say = @$(if $(V),set -x,echo "  $(1)  $(2)");

all: metatopics

metatopics: $(BUILD)/metatopics
	cp $< $@

$(BUILD)/metatopics: $(BUILD)/src/main.o $(LIB)
	$(call say,LD,$@)$(LINK) -o $@ $^ $(LIBS)

$(LIB): $(LIB_OBJ)
	@rm -f $@
	$(call say,AR,$@)ar rcs $@ $^

$(BUILD)/%.o: %.c config.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(COMPILE) -c -o $@ $<

$(BUILD)/tests/%: $(BUILD)/tests/%.o $(LIB)
	$(call say,LD,$@)$(LINK) -o $@ $^ $(LIBS)

tests: $(TEST_PROGRAMS)

config.mk: configure config.mk.in
	./configure

configure: configure.ac
	autoconf

clean:
	rm -rf build build-* metatopics

distclean: clean
	rm -rf config.mk config.log config.status configure configure~ autom4te.cache

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: all tests clean distclean help deps demo check install dist format
.SECONDARY:
