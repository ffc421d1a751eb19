# The module file that make install writes, with each program for modules that is here
# (Environment Modules, Lmod): loads, unloads, loads what the program was built with.
. tests/program/lib.sh
inits=()
for init in ${MODULESHOME:+"$MODULESHOME/init/bash"} /usr/share/modules/init/bash \
  /usr/share/lmod/lmod/init/bash /usr/lib/lmod/lmod/init/bash; do
  [ ! -r "$init" ] || inits+=("$init")
done
[ ${#inits[@]} -gt 0 ] || skip "no Environment Modules and no Lmod here (tools/deps modules)"

version=$("$metatopics" --version | sed -n 's/^metatopics *//p')
folder=$tmp/opt/share/modulefiles
make -s install-module BUILD="$BUILD" prefix="$tmp/opt" MODULES="of-the-test" >/dev/null
install -D "$metatopics" "$tmp/opt/bin/metatopics"
cp "$folder/metatopics/$version" "$folder/metatopics/0.0.0-other"
printf '%s\n' '#%Module1.0' 'setenv MT_OF_THE_TEST loaded' >"$folder/of-the-test"

cat >"$tmp/load" <<'E2'
# load INIT FOLDER VERSION PREFIX: in a shell of its own
. "$1"
say() { echo "$*"; exit 1; }
before=$PATH
module use "$2"
module load "metatopics/$3" || say "module load fails"
[ "$(command -v metatopics)" = "$4/bin/metatopics" ] || say "PATH has $(command -v metatopics)"
metatopics --version | grep -Eqx "metatopics +$3" || say "the program does not start"
[ "$METATOPICS_DATA" = "$4/share/metatopics" ] || say "METATOPICS_DATA is $METATOPICS_DATA"
[ "${MT_OF_THE_TEST:-}" = loaded ] || say "the module that it needs is not loaded"
case :$MANPATH: in *:$4/share/man::*) ;; *) say "MANPATH is $MANPATH" ;; esac
[ -z "${METATOPICS_CUDA:-}" ] || say "METATOPICS_CUDA is set"
module help metatopics 2>&1 | grep -q 'srun metatopics run' || say "no help"
module whatis metatopics 2>&1 | grep -q 'topic models' || say "no whatis"
# another version takes its place or is refused: never both
module load metatopics/0.0.0-other >/dev/null 2>&1
[ "$(tr : '\n' <<<"$LOADEDMODULES" | grep -c ^metatopics/)" = 1 ] || say "loaded: $LOADEDMODULES"
module unload metatopics
[ -z "${METATOPICS_DATA:-}" ] || say "unload leaves METATOPICS_DATA"
case :$PATH: in *:$4/bin:*) say "unload leaves PATH" ;; esac
E2
for init in "${inits[@]}"; do
  env -u LOADEDMODULES -u _LMFILES_ -u MODULEPATH -u MANPATH -u METATOPICS_CUDA -u BASH_ENV \
    bash "$tmp/load" "$init" "$folder" "$version" "$tmp/opt" >"$tmp/output" 2>&1 ||
    { cat "$tmp/output" >&2; fail "with $init"; }
  echo "$init: loads and unloads metatopics/$version"
done
