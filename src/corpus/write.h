/* corpus.h5, as the design lays it down. */
#ifndef MT_CORPUS_WRITE_H
#define MT_CORPUS_WRITE_H
#include "corpus/build.h"

/**
 * Writes a built corpus. Its fingerprint is that of its content, so that what comes after
 * is not made again when the input was touched and is the same; `source` (the attribute of
 * that name) is what decides whether the corpus itself is made again. Collective.
 */
mt_status mt_corpus_write(const mt_comm *comm, const char *path,
                          const mt_fingerprint *source, const mt_built *built);

#endif
