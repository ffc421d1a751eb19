# metatopics: `make demo` and `make check` are the two commands; `make help` lists the rest.
# configure finds, config.mk remembers, this file builds: explicit lists of files.
# BUILD=folder keeps another build (another compiler, sanitizers) beside the usual one; a
# config.mk in that folder (cd folder && ../configure ...) goes before the one here.
BUILD = build
.DEFAULT_GOAL = all
CONFIG := $(firstword $(wildcard $(BUILD)/config.mk) config.mk)

# goals that must work before anything is installed
BARE = help deps clean distclean bench demo check check-sanitize check-valgrind check-slurm fuzz format \
	check-format dist deb
ifneq ($(filter-out $(BARE),$(or $(MAKECMDGOALS),all)),)
-include $(CONFIG)
endif

# ---- the program -------------------------------------------------------------------
base_SRC = src/base/log.c src/base/progress.c src/base/memory.c src/base/random.c \
	src/base/hash.c src/base/stop.c src/base/rows.c

comm_SRC = src/comm/comm.c src/comm/pool.c src/comm/layout.c src/comm/debugger.c

deck_SRC = src/deck/command_line.c src/deck/deck.c src/deck/help.c src/deck/locate.c \
	src/deck/nearest.c src/deck/parameters.c src/deck/schema.c src/deck/value.c

store_SRC = src/store/file.c src/store/write.c src/store/read.c src/store/folder.c \
	src/store/checksum.c

corpus_SRC = src/corpus/stage.c src/corpus/build.c src/corpus/collect.c \
	src/corpus/arrange.c src/corpus/exchange.c src/corpus/vocabulary.c src/corpus/stop_words.c \
	src/corpus/terms.c src/corpus/tokens.c src/corpus/date.c src/corpus/source.c \
	src/corpus/intake.c src/corpus/cut.c src/corpus/csv_rows.c src/corpus/stream.c src/corpus/sgml.c src/corpus/sgml_parts.c src/corpus/jsonl.c src/corpus/flat_json.c \
	src/corpus/csv.c src/corpus/text.c src/corpus/piece.c src/corpus/decode.c \
	src/corpus/write.c src/corpus/read.c

lda_SRC = src/lda/bound.c src/lda/fit_ref.c src/lda/kernel.c src/lda/kernel_avx512.c \
	src/lda/kernel_avx2.c src/lda/kernel_portable.c src/lda/fit.c src/lda/plan.c \
	src/lda/fits.c src/lda/ensemble.c src/lda/matrix.c

knn_SRC = src/knn/reference.c src/knn/nn_descent.c src/knn/choose.c src/knn/stage.c

umap_SRC = src/umap/stage.c src/umap/layout.c src/umap/graph.c src/umap/fit_ab.c \
	src/umap/start.c src/umap/spectral.c src/umap/host_graph.c src/umap/small_parts.c src/umap/places.c src/umap/pca.c src/umap/eigen.c \
	src/umap/move.c src/umap/kernel.c src/umap/kernel_avx512.c src/umap/kernel_avx2.c \
	src/umap/reference.c

hdbscan_SRC = src/hdbscan/hdbscan.c src/hdbscan/spanning_tree_ref.c src/hdbscan/distinct.c \
	src/hdbscan/edges.c src/hdbscan/linkage.c src/hdbscan/condense.c src/hdbscan/select.c src/hdbscan/share.c src/hdbscan/stage.c

backend_SRC = src/backend/open.c src/backend/cpu.c src/backend/cpu_knn.c src/backend/cpu_product.c \
	src/backend/cpu_product_vnni.c src/backend/cpu_product_avx2.c src/backend/cpu_product_portable.c \
	src/backend/cpu_nn_descent.c src/backend/cpu_umap_graph.c src/backend/cpu_umap_start.c \
	src/backend/cpu_umap_epochs.c \
	src/backend/cpu_kdtree.c src/backend/cpu_spanning_tree.c

report_SRC = src/report/json_file.c src/report/record.c src/report/meter.c src/report/gpu_watch.c src/report/job.c \
	src/report/costs.c src/report/history.c src/report/history_plot.c src/report/versions.c src/report/labels.c src/report/topic_sums.c src/report/text.c \
	src/report/place.c src/report/map.c src/report/glyphs.c src/report/process.c \
	src/report/draw.c src/report/tables.c src/report/summary.c src/report/findings.c src/report/stage.c src/report/show.c

stage_SRC = src/pipeline.c src/check.c src/memory_need.c
LIB_SRC = $(base_SRC) $(comm_SRC) $(deck_SRC) $(store_SRC) $(corpus_SRC) $(lda_SRC) \
	$(knn_SRC) $(umap_SRC) $(hdbscan_SRC) $(backend_SRC) $(report_SRC) $(stage_SRC)

# the CUDA backend, a shared object that the program loads: what it calls is in the program
cuda_SRC = cuda/backend.cu cuda/device.cu cuda/exchange.cu cuda/primitives.cu
cuda_SRC += cuda/hdbscan.cu cuda/hdbscan_space.cu cuda/hdbscan_cores.cu cuda/hdbscan_rounds.cu \
	cuda/hdbscan_edges.cu cuda/hdbscan_dendrogram.cu cuda/hdbscan_condense.cu cuda/hdbscan_select.cu
cuda_SRC += cuda/knn.cu cuda/knn_rows.cu cuda/knn_select.cu cuda/knn_measure.cu \
	cuda/knn_again.cu cuda/knn_group.cu cuda/knn_feed.cu
cuda_SRC += cuda/umap.cu cuda/umap_graph.cu cuda/umap_start.cu cuda/umap_epochs.cu
cuda_SRC += cuda/nn_descent.cu

# ---- tests: tests/NAME.c, the ranks are in its first comment -------------------------
TESTS =
TESTS += test_comm
TESTS += test_store
TESTS += test_layout
TESTS += test_report
TESTS += test_faults
TESTS += test_record
TESTS += test_history
TESTS += test_gpu_watch
TESTS += test_topic_sums
TESTS += test_map_stage
TESTS += test_deck
TESTS += test_umap
TESTS += test_hdbscan
TESTS += test_hdbscan_stage
TESTS += test_knn
TESTS += test_nn_descent
TESTS += test_lda
TESTS += test_lda_split
TESTS += test_ensemble
TESTS += test_reuters_lda
TESTS += test_command_line
TESTS += test_corpus_tokens
TESTS += test_corpus_readers
TESTS += test_corpus_build
TESTS += test_exchange
TESTS += test_kernels
TESTS += test_primitives
# whole programs: tests/program/NAME.sh
PROGRAM_TESTS =
PROGRAM_TESTS += newswire
PROGRAM_TESTS += simulate
PROGRAM_TESTS += show
PROGRAM_TESTS += history
PROGRAM_TESTS += planted
PROGRAM_TESTS += get_reuters
PROGRAM_TESTS += deck
PROGRAM_TESTS += format
PROGRAM_TESTS += configure
PROGRAM_TESTS += readme
PROGRAM_TESTS += build_install
PROGRAM_TESTS += build_dist
PROGRAM_TESTS += module
PROGRAM_TESTS += packaging
PROGRAM_TESTS += corpus
PROGRAM_TESTS += folder
PROGRAM_TESTS += restart
PROGRAM_TESTS += faults_gpu
PROGRAM_TESTS += damaged
PROGRAM_TESTS += impossible_numbers
PROGRAM_TESTS += hostile_paths
PROGRAM_TESTS += hostile_corpus
PROGRAM_TESTS += hostile_sizes
PROGRAM_TESTS += full_disk
PROGRAM_TESTS += file_locks
PROGRAM_TESTS += same_bits
PROGRAM_TESTS += same_bits_gpu
PROGRAM_TESTS += bench_gpu
PROGRAM_TESTS += bench
# on a Slurm cluster of virtual nodes, the longest first: tests/slurm/NAME.sh
SLURM_TESTS =
SLURM_TESTS += slurm_killed
SLURM_TESTS += slurm_submit
SLURM_TESTS += slurm_stopped
SLURM_TESTS += slurm_hetjob
SLURM_TESTS += slurm_full
SLURM_TESTS += slurm_interactive
# what they call: tests/NAME.c
TEST_TOOLS = h5same h5set check_planted
# tests/fuzz/NAME.c, starting from the files in tests/fuzz/NAME/
FUZZERS =
FUZZERS += fuzz_deck
FUZZERS += fuzz_sgml
FUZZERS += fuzz_jsonl
FUZZERS += fuzz_csv

WARNINGS = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
OPENMP = -fopenmp
override CPPFLAGS += -Isrc -Iinclude $(CPPFLAGS_FOUND) -D_GNU_SOURCE -DMT_VERSION='"$(VERSION)"'
COMPILE = $(CC) -std=gnu11 $(WARNINGS) $(CPPFLAGS) $(CFLAGS) $(SANITIZE) $(OPENMP) -MMD -MP
LINK = $(CC) $(CFLAGS) $(SANITIZE) $(OPENMP) $(LDFLAGS)
LIBS = $(LIBS_FOUND) -lm -ldl
# all of the library, visible to the CUDA backend
WHOLE_LIB = -rdynamic -Wl,--whole-archive $(LIB) -Wl,--no-whole-archive
KEEP_LOADED = $(if $(SANITIZE),$(BUILD)/tests/keep_loaded.o)

LIB = $(BUILD)/libmetatopics.a
LIB_OBJ = $(LIB_SRC:%.c=$(BUILD)/%.o)
TOOLS = $(BUILD)/newswire $(BUILD)/simulate
BENCH_PROGRAMS = $(patsubst %,$(BUILD)/bench/%,bench_data bench_limits bench_corpus bench_lda bench_knn \
	bench_umap bench_hdbscan bench_layout many_documents mpi_clock.so)
# `make check TESTS="test_comm planted"` runs those alone, units or whole-program tests
ONLY = $(filter command,$(firstword $(origin TESTS)))
C_TESTS = $(foreach t,$(TESTS),$(if $(wildcard tests/$t.c),$t))
CUDA_TESTS = $(foreach t,$(TESTS),$(if $(wildcard tests/$t.cu),$t))
UNIT_TESTS = $(C_TESTS) $(CUDA_TESTS)
TEST_PROGRAMS = $(C_TESTS:%=$(BUILD)/tests/%) $(CUDA_TESTS:%=$(BUILD)/emulated/tests/%)

# V=1 shows whole commands
say = @$(if $(V),set -x,echo "  $(1)  $(2)");

all: $(if $(filter build,$(BUILD)),metatopics,$(BUILD)/metatopics) \
	$(if $(filter yes,$(CUDA_FOUND)),$(BUILD)/metatopics-cuda.so)

metatopics: $(BUILD)/metatopics
	cp $< $@

$(BUILD)/metatopics: $(BUILD)/src/main.o $(KEEP_LOADED) $(LIB)
	$(call say,LD,$@)$(LINK) -o $@ $(filter-out $(LIB),$^) $(WHOLE_LIB) $(LIBS)

# the list of objects is in this file
$(LIB): $(LIB_OBJ) Makefile
	@rm -f $@
	$(call say,AR,$@)ar rcs $@ $(LIB_OBJ)

$(BUILD)/%.o: %.c $(CONFIG)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(COMPILE) -c -o $@ $<

# where make install puts the CUDA backend
$(BUILD)/src/backend/open.o: override CPPFLAGS += -DMT_LIBDIR='"$(libdir)/metatopics"'

# distances, and positions, are the same bits in every function and with every -march
$(BUILD)/src/knn/%.o $(BUILD)/src/umap/%.o $(BUILD)/src/hdbscan/%.o \
	$(BUILD)/src/backend/cpu_%.o: override CFLAGS += -ffp-contract=off

# the same bits with AVX-512 and AVX2: only what is written as FMA becomes one
$(BUILD)/src/lda/%.o: override CFLAGS += -ffp-contract=off -Wno-psabi

# gcc reads in the sources which instructions it may use, clang here
ifneq ($(findstring clang,$(OMPI_CC)),)
$(BUILD)/src/umap/kernel_avx2.o: override CFLAGS += -mavx2
$(BUILD)/src/umap/kernel_avx512.o: override CFLAGS += -mavx2 -mavx512f -mavx512dq -mavx512vl -mavx512bw
$(BUILD)/src/lda/kernel_avx2.o: override CFLAGS += -mavx2 -mfma
$(BUILD)/src/lda/kernel_avx512.o: override CFLAGS += -mavx2 -mfma -mavx512f -mavx512dq -mavx512vl -mavx512bw
$(BUILD)/src/backend/cpu_product_avx2.o: override CFLAGS += -mavx2
$(BUILD)/src/backend/cpu_product_vnni.o: override CFLAGS += -mavx2 -mavx512f -mavx512vnni
endif

# ---- the CUDA backend ----------------------------------------------------------------
# float and double as in C: nothing contracted, so that both backends give the same bits
NVCCFLAGS = -O3 -lineinfo
COMPILE_CUDA = $(NVCC) -ccbin $(MPICXX) -std=c++17 $(NVCCFLAGS) $(CUDA_GENCODE) -fmad=false \
	--extended-lambda --threads 0 -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-ffp-contract=off -Icuda \
	$(CPPFLAGS) $(CUDA_CPPFLAGS) -DMT_CUDA_LEAST=$(CUDA_LEAST) -DOMPI_SKIP_MPICXX -MMD -MP
cuda_OBJ = $(cuda_SRC:%=$(BUILD)/%.o)

$(BUILD)/metatopics-cuda.so: $(cuda_OBJ) Makefile
	$(call say,LD,$@)$(NVCC) -ccbin $(MPICXX) -shared -o $@ $(cuda_OBJ) $(CUDA_LIBS)

$(BUILD)/%.cu.o: %.cu $(CONFIG)
	@mkdir -p $(@D)
	$(call say,NVCC,$@)$(COMPILE_CUDA) -c -o $@ $<

# the same sources for the CPU, with tests/emulate/ in the place of CUDA, CUB and NCCL
emulate_SRC = tests/emulate/emulate.cpp tests/emulate/runtime.cpp tests/emulate/cublas.cpp \
	tests/emulate/nccl.cpp tests/emulate/primitives.cpp \
	$(filter-out cuda/primitives.cu,$(cuda_SRC))
emulate_OBJ = $(emulate_SRC:%=$(BUILD)/emulated/%.o)
EMULATED = $(BUILD)/emulated/metatopics-cuda.so
COMPILE_EMULATED = $(MPICXX) -std=c++17 -Wall -Wextra -Wno-unknown-pragmas -DMT_EMULATE -Itests/emulate -Icuda \
	$(CPPFLAGS) -DOMPI_SKIP_MPICXX $(CFLAGS) -ffp-contract=off -fPIC -fvisibility=hidden $(SANITIZE) -MMD -MP

$(EMULATED): $(emulate_OBJ) Makefile
	$(call say,LD,$@)$(MPICXX) -shared $(SANITIZE) $(LDFLAGS) -o $@ $(emulate_OBJ)

# in the place of the driver's NVML
NVML = $(BUILD)/emulated/libnvidia-ml.so.1
$(NVML): tests/emulate/nvml.c $(CONFIG)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(COMPILE) -fPIC -shared -Wl,-soname,libnvidia-ml.so.1 -o $@ $<

$(BUILD)/emulated/%.o: % $(CONFIG)
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(COMPILE_EMULATED) -x c++ -c -o $@ $<

# tests of the backend's own parts, tests/NAME.cu: for emulated GPUs and for real ones
$(BUILD)/emulated/tests/%: $(BUILD)/emulated/tests/%.cu.o $(emulate_OBJ) $(KEEP_LOADED) $(LIB)
	$(call say,LD,$@)$(MPICXX) $(SANITIZE) $(OPENMP) $(LDFLAGS) -o $@ $^ $(LIBS) $(TEST_LIBS_FOUND)

$(BUILD)/gpu/tests/%: $(BUILD)/tests/%.cu.o $(cuda_OBJ) $(LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(MPICXX) $(OPENMP) $(LDFLAGS) -o $@ $^ -L$(CUDA_HOME)/lib64 \
	  -L$(CUDA_HOME)/lib $(CUDA_LIBS) -lcudart_static -lrt $(LIBS) $(TEST_LIBS_FOUND)

$(BUILD)/newswire: $(BUILD)/tools/newswire/newswire.o $(BUILD)/tools/newswire/words.o $(LIB)
	$(call say,LD,$@)$(LINK) -o $@ $^ $(LIBS)

$(BUILD)/simulate: $(BUILD)/tools/simulate/simulate.o $(LIB)
	$(call say,LD,$@)$(LINK) -o $@ $^ $(LIBS)

$(BUILD)/umap-layout: $(BUILD)/tools/reference/umap-layout.o $(LIB)
	$(call say,LD,$@)$(LINK) -o $@ $^ $(LIBS)

$(BUILD)/tests/%: $(BUILD)/tests/%.o $(KEEP_LOADED) $(LIB)
	$(call say,LD,$@)$(LINK) -o $@ $(filter-out $(LIB),$^) $(WHOLE_LIB) $(LIBS) $(TEST_LIBS_FOUND)

# calls of these go through the test, which lets them fail
$(BUILD)/tests/test_faults: override LDFLAGS += $(foreach f,mt_memory_new mt_memory_grow \
	mt_string_copy mt_store_open mt_store_shape mt_store_read mt_rename_synced \
	mt_folder_make,-Wl,--wrap=$f)

# more CPUs than there are
$(BUILD)/tests/test_record: override LDFLAGS += -Wl,--wrap=sched_getaffinity

$(BUILD)/fuzz/%: $(BUILD)/tests/fuzz/%.o $(KEEP_LOADED) $(LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(LINK) -fsanitize=fuzzer -o $@ $^ $(LIBS)

tests: $(TEST_PROGRAMS) $(BUILD)/metatopics $(EMULATED) $(NVML) \
	$(BUILD)/emulated/bench_gpu $(TOOLS) $(TEST_TOOLS:%=$(BUILD)/tests/%) \
	$(if $(SANITIZE),,$(BENCH_PROGRAMS))
fuzzers: $(FUZZERS:%=$(BUILD)/fuzz/%)

# ---- setting up ----------------------------------------------------------------------
deps:
	@tools/deps

config.mk: configure config.mk.in
	if [ -x ./config.status ]; then ./config.status --recheck && ./config.status; \
	else ./configure; fi

configure: configure.ac
	@command -v autoconf >/dev/null || { \
	  echo "no autoconf: \"make deps\" installs or lists what is needed" >&2; exit 1; }
	autoconf

# ---- running ---------------------------------------------------------------------------
DEMO_RANKS = 2
demo:
	@tools/deps
	@+$(MAKE) --no-print-directory all $(TOOLS) || exit; \
	tools/demo $(BUILD) $(DEMO_RANKS)

check:
	@tools/deps
	@+$(MAKE) --no-print-directory tests || exit; \
	tests/run $(BUILD) $(TESTS) $(if $(ONLY),,$(PROGRAM_TESTS))

# the tests under the address and undefined-behaviour sanitizers, but for those that run other
# programs, and the slowest that have no code to themselves
SANITIZED_RANKS = 1 3
NOT_SANITIZED = get_reuters format configure readme build_install build_dist module packaging same_bits \
	restart history faults_gpu same_bits_gpu damaged full_disk file_locks bench bench_gpu test_reuters_lda
SANITIZED = BUILD=build-asan CFLAGS="-O1 -g -fno-omit-frame-pointer" \
	SANITIZE="-fsanitize=address,undefined -fno-sanitize-recover=undefined"
check-sanitize:
	@tools/deps
	@+$(MAKE) --no-print-directory $(SANITIZED) tests || exit; \
	SECONDS_FACTOR=5 ONLY_RANKS="$(SANITIZED_RANKS)" FEW_GPUS=1 tests/run build-asan \
	  $(if $(ONLY),$(TESTS),$(filter-out $(NOT_SANITIZED),$(UNIT_TESTS) $(PROGRAM_TESTS)))

# on this machine's GPUs: what make check runs on emulated ones, then compute-sanitizer
GPU_TEST_PROGRAMS = $(CUDA_TESTS:%=$(BUILD)/gpu/tests/%)
gpu-tests: all $(C_TESTS:%=$(BUILD)/tests/%) $(TOOLS) $(TEST_TOOLS:%=$(BUILD)/tests/%) \
	$(if $(filter yes,$(CUDA_FOUND)),$(GPU_TEST_PROGRAMS))
	$(NEEDS_CUDA)
check-gpu: gpu-tests
	@PATH="$$PATH:$(CUDA_HOME)/bin" tests/gpu $(BUILD) $(if $(ONLY),$(TESTS))

# the demo's run under valgrind: no definite leak of ours
check-valgrind:
	@tools/deps valgrind
	@+$(MAKE) --no-print-directory tests || exit; \
	tests/valgrind $(BUILD)

# jobs on real Slurm daemons, as root; what they need is installed
check-slurm:
	@tools/deps slurm
	@+$(MAKE) --no-print-directory $(BUILD)/metatopics $(TOOLS) $(BUILD)/tests/h5same || exit; \
	tests/run $(BUILD) $(if $(ONLY),$(TESTS),$(SLURM_TESTS))

FUZZ_SECONDS = 20
FUZZED = BUILD=build-fuzz CFLAGS="-O1 -g -fno-omit-frame-pointer" \
	SANITIZE="-fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined"
fuzz:
	@tools/deps fuzz
	@+OMPI_CC=clang $(MAKE) --no-print-directory $(FUZZED) fuzzers || exit; \
	tests/fuzz/run build-fuzz $(FUZZ_SECONDS) $(FUZZERS)

# ---- measuring -------------------------------------------------------------------------
# every stage on CPUs beside the peers and the limits: make bench BENCH="knn umap", and
# BENCH_OPTIONS="--help"; BENCH_VENV: where the peers are, or go (tools/bench/requirements.txt)
PYTHON = python3
BENCH =
BENCH_OPTIONS =
BENCH_VENV = $(BUILD)/bench/venv
BENCH_PEERS = $(if $(filter --no-peers,$(BENCH_OPTIONS)),,$(BENCH_VENV)/pinned)
bench:
	@tools/deps bench
	@+$(MAKE) --no-print-directory bench-programs $(BENCH_PEERS) || exit; \
	$(PYTHON) tools/bench/bench --build $(BUILD) --python $(BENCH_VENV)/bin/python \
	  $(BENCH_OPTIONS) $(BENCH)
bench-programs: $(BENCH_PROGRAMS) $(BUILD)/metatopics $(BUILD)/newswire

$(BENCH_VENV)/pinned: tools/bench/requirements.txt
	@if [ -e $@ ] && cmp -s $< $@; then touch $@; else \
	  $(PYTHON) -m venv $(BENCH_VENV) && \
	  $(BENCH_VENV)/bin/python -m pip install --quiet -r $< && cp $< $@; fi

$(BUILD)/bench/mpi_clock.so: tools/bench/mpi_clock.c $(CONFIG)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(COMPILE) -fPIC -shared -o $@ $<

$(BUILD)/bench/bench_layout: $(BUILD)/tools/bench/gpu_trust.o
$(BUILD)/bench/%: $(BUILD)/tools/bench/%.o $(LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(LINK) -o $@ $(filter-out $(LIB),$^) $(WHOLE_LIB) $(LIBS)

# the stages on GPUs, one process each: all that are visible; for the emulator too
bench_gpu_SRC = tools/bench/bench_gpu.cu tools/bench/gpu_measure.cu tools/bench/gpu_limits.cu \
	tools/bench/gpu_points.cu tools/bench/gpu_knn.cu tools/bench/gpu_umap.cu \
	tools/bench/gpu_hdbscan.cu tools/bench/gpu_check.cu
bench_gpu_OBJ = $(patsubst %,$(BUILD)/tools/bench/%.o,gpu_table gpu_trust)
BENCH_GPU = $(BUILD)/bench/bench_gpu
$(BENCH_GPU): $(bench_gpu_SRC:%=$(BUILD)/%.o) $(bench_gpu_OBJ) $(cuda_OBJ) $(LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(NVCC) -ccbin $(MPICXX) -Xcompiler $(OPENMP) -o $@ $^ $(CUDA_LIBS) $(LIBS)

$(BUILD)/emulated/bench_gpu: $(bench_gpu_SRC:%=$(BUILD)/emulated/%.o) $(bench_gpu_OBJ) \
	$(emulate_OBJ) $(KEEP_LOADED) $(LIB)
	$(call say,LD,$@)$(MPICXX) $(OPENMP) $(SANITIZE) $(LDFLAGS) -o $@ $^ $(LIBS)

NEEDS_CUDA = $(if $(filter yes,$(CUDA_FOUND)),,$(error no CUDA and NCCL: see what ./configure says))
bench-gpu: $(if $(filter yes,$(CUDA_FOUND)),$(BENCH_GPU))
	$(NEEDS_CUDA)@gpus=$$($(BENCH_GPU) --count) && tools/mpirun -n $$gpus $(BENCH_GPU) $(BENCH_GPU_OPTIONS)

STAGE = knn
profile-gpu: $(if $(filter yes,$(CUDA_FOUND)),$(BENCH_GPU))
	$(NEEDS_CUDA)@tools/bench/profile_gpu $(BENCH_GPU) $(STAGE)

# UMAP beside umap-learn: trustworthiness, kept neighbours, outliers over five seeds, on two
# planted sets of 20,000 rows and on the topics of finished runs: make compare-umap RUNS=out
compare-umap: $(BUILD)/umap-layout $(BENCH_VENV)/pinned
	$(BENCH_VENV)/bin/python tools/reference/umap_learn.py compare $< $(RUNS)

# ---- the look of the sources (clang-format 14: others lay out differently) --------------
format:
	@tools/deps format
	@tools/format
check-format:
	@tools/deps format
	@tools/format --check

# ---- installing and shipping -----------------------------------------------------------
MAN = $(BUILD)/metatopics.1
PUBLIC_HEADERS = $(wildcard include/metatopics/*.h)
DOCS = README.md LICENSE $(filter-out %.in,$(wildcard doc/*))
INPUTS = $(wildcard inputs/*.xml)
# submit sends the sources: it works in their tree alone
SLURM_SCRIPTS = $(filter-out %/submit %/lib.sh,$(wildcard scripts/slurm/*))
moduledir = $(datadir)/modulefiles
MODULE = $(call TO,$(moduledir))/metatopics/$(VERSION)
TO = $(DESTDIR)$(1)
$(MAN): doc/metatopics.1.in $(BUILD)/metatopics
	$(call say,MAN,$@)$(BUILD)/metatopics help --man >$@.part && \
	  sed -e '/^@PARAMETERS@/{r $@.part' -e 'd}' -e 's/@VERSION@/$(VERSION)/' $< >$@

install: all $(MAN) install-module
	install -d $(call TO,$(bindir)) $(call TO,$(mandir)/man1) $(call TO,$(docdir)) \
	  $(call TO,$(datadir)/metatopics/inputs) $(call TO,$(datadir)/metatopics/slurm)
	install $(BUILD)/metatopics $(call TO,$(bindir))/metatopics
ifeq ($(CUDA_FOUND),yes)
	install -d $(call TO,$(libdir)/metatopics)
	install $(BUILD)/metatopics-cuda.so $(call TO,$(libdir)/metatopics)
endif
	install -m 644 $(MAN) $(call TO,$(mandir)/man1)
	install -m 644 $(DOCS) $(call TO,$(docdir))
	install -m 644 $(INPUTS) $(call TO,$(datadir)/metatopics/inputs)
	install $(SLURM_SCRIPTS) $(call TO,$(datadir)/metatopics/slurm)
	install -m 644 scripts/slurm/lib.sh $(call TO,$(datadir)/metatopics/slurm)
ifneq ($(PUBLIC_HEADERS),)
	install -d $(call TO,$(includedir)/metatopics)
	install -m 644 $(PUBLIC_HEADERS) $(call TO,$(includedir)/metatopics)
endif

install-module:
	install -d $(dir $(MODULE))
	sed $(foreach v,VERSION MODULES datadir bindir mandir docdir,-e 's|@$v@|$($v)|g') \
	  packaging/modulefile.in >$(MODULE)

uninstall:
	rm -f $(call TO,$(bindir))/metatopics $(call TO,$(mandir)/man1)/metatopics.1
	rm -rf $(call TO,$(docdir)) $(call TO,$(datadir)/metatopics) $(call TO,$(libdir)/metatopics) \
	  $(call TO,$(includedir)/metatopics)
	rm -f $(MODULE)
	[ ! -d $(dir $(MODULE)) ] || rmdir --ignore-fail-on-non-empty $(dir $(MODULE))

dist:
	@tools/dist

# packaging/debian: see doc/packaging.md
deb:
	@tools/deb $(BUILD)/deb

help:
	@echo "make demo       install what is missing, build, run on a small corpus, draw the map"
	@echo "make check      install what is missing, build, run all tests"
	@echo "                TESTS=\"test_comm ...\": those alone"
	@echo "make            build ./metatopics (V=1: whole commands; BUILD=folder)"
	@echo "make deps       install what is missing, or list the packages' names"
	@echo "make install    into prefix (DESTDIR=folder: staged), with a module file; make uninstall"
	@echo "                MODULES=\"gcc openmpi\": modules that its module loads (default: configure's)"
	@echo "make check-sanitize   tests under the address and undefined sanitizers"
	@echo "make check-gpu        the CUDA backend's tests on this machine's GPUs, and compute-sanitizer"
	@echo "make check-valgrind   the demo under valgrind"
	@echo "make check-slurm      jobs on a Slurm cluster of virtual nodes (root)"
	@echo "make fuzz       every fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS)"
	@echo "make bench      every stage on CPUs beside scikit-learn, gensim, tomotopy, umap-learn, hdbscan and the limits"
	@echo "                BENCH=\"knn umap ...\": those alone; BENCH_OPTIONS=\"--quick\", \"--help\""
	@echo "make bench-gpu        kNN, UMAP and HDBSCAN on 1 to all GPUs, held against the machine's limits"
	@echo "                BENCH_GPU_OPTIONS=\"--help\""
	@echo "make profile-gpu      hardware counters of a stage's kernels, by ncu: STAGE=knn, umap or hdbscan"
	@echo "make format     lay out the sources; make check-format: only compare"
	@echo "make compare-umap     UMAP and umap-learn side by side (RUNS=\"folder ...\": on their topics)"
	@echo "make dist       metatopics-VERSION.tar.gz; make deb: a Debian package; make clean, make distclean"

clean:
	rm -rf build build-* metatopics

distclean: clean
	rm -rf config.mk config.log config.status configure configure~ autom4te.cache

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: all tests gpu-tests fuzzers deps demo check check-gpu check-sanitize check-valgrind \
	check-slurm fuzz format \
	check-format install install-module uninstall dist deb help clean distclean bench bench-programs \
	bench-gpu compare-umap profile-gpu
.SECONDARY:
