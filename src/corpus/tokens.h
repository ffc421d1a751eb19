/* From text to tokens, exactly as scikit-learn's CountVectorizer: the text lower-cased as
 * Python's str.lower(), then every maximal run of two or more word characters (\b\w\w+\b);
 * a word character is what Python's re takes for \w: letters, numbers, underscore.
 * Combining marks are none, so scripts that write vowels as marks are cut there. The
 * Unicode version is utf8proc's. */
#ifndef MT_CORPUS_TOKENS_H
#define MT_CORPUS_TOKENS_H
#include "corpus/buffer.h"
#include "corpus/readers.h"
#include <stdbool.h>

/* The next n tokens, 1 to MT_TOKENS_MOST, in UTF-8. They lie in the scratch until the next text
 * is cut; 16 bytes may be read from each on. */
typedef mt_status (*mt_token_sink)(void *context, int64_t n, const mt_span *tokens);
enum { MT_TOKENS_MOST = 192 };

/**
 * text     valid UTF-8 (a byte that is not ends a token)
 * scratch  room that is kept between calls; the caller destroys it
 * Errors   MT_ERR_MEMORY; what the sink returned, at once
 */
mt_status mt_tokenize(const char *text, size_t size, bool lowercase, mt_buffer *scratch,
                      mt_token_sink sink, void *context);

#endif
