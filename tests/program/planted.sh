# The demo's planted topics come back: inputs/demo.xml on newswire's collection, 2 ranks.
# SECONDS 300
. tests/program/lib.sh
"$BUILD/newswire" --documents 2000 --periods 5 --out "$tmp/corpus"
mpi 2 "$metatopics" run inputs/demo.xml --set corpus.path="$tmp/corpus" --out "$tmp/out"
expect_file "$tmp"/out/{corpus,topics,knn,umap,hdbscan}.h5 "$tmp"/out/{map.gp,map.dat,topics.csv,run.json}
"$BUILD/tests/check_planted" "$tmp/corpus/truth.json" "$tmp/out"
