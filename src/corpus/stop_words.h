/* Words that make no terms. */
#ifndef MT_CORPUS_STOP_WORDS_H
#define MT_CORPUS_STOP_WORDS_H
#include "comm/comm.h"
#include "corpus/terms.h"
#include "deck/parameters.h"

/**
 * options->stop_words: "none", "english" (scikit-learn's list of 318 words) or a file, a
 * word a line, UTF-8; its lines are cut into tokens as the texts are. Collective: rank 0
 * reads the file.
 * out      the same on all ranks; the caller destroys it
 * Errors   MT_ERR_INPUT: the file cannot be read
 */
mt_status mt_stop_words_load(const mt_comm *comm, const mt_corpus_options *options,
                             mt_terms *out);

#endif
