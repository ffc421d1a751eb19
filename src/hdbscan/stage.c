/* The stage: umap.h5's embedding to hdbscan.h5's clusters. */
