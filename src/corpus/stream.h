/* Compressed files and archives, as a sequence of members (libarchive). Not collective. */
#ifndef MT_CORPUS_STREAM_H
#define MT_CORPUS_STREAM_H
#include "base/status.h"
#include <stddef.h>
#include <stdint.h>

typedef struct mt_stream mt_stream;

/* gzip, bzip2, xz, zstd, lz4, compress or not; in it a tar, zip or cpio archive or just bytes.
 * Errors: MT_ERR_INPUT, naming the file. */
mt_status mt_stream_open(const char *path, mt_stream **stream_out);

/**
 * The next regular file of an archive, or once the bytes themselves.
 * name_out  its path in the archive ("./" taken off), the stream's until the next call;
 *           "" for bytes that are no archive; NULL at the end
 * Errors    MT_ERR_INPUT: damaged or cut
 */
mt_status mt_stream_next(mt_stream *stream, const char **name_out);

/* Up to size bytes of the member; 0 at its end. Errors as above. */
mt_status mt_stream_read(mt_stream *stream, void *out, size_t size, size_t *got_out);

/* Bytes of the (compressed) file read so far. */
int64_t mt_stream_consumed(const mt_stream *stream);

void mt_stream_close(mt_stream *stream); /* NULL is fine */

#endif
