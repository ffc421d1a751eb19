/* What a collection consists of: its files in the order of their names, and its format. */
#ifndef MT_CORPUS_SOURCE_H
#define MT_CORPUS_SOURCE_H
#include "base/hash.h"
#include "comm/comm.h"
#include "deck/parameters.h"

typedef struct mt_source_file {
  char *path, *name;      /* to open it; relative to the collection; owned */
  int64_t size, modified; /* bytes; nanoseconds */
  bool streamed; /* compressed or an archive: read from its beginning, by all */
} mt_source_file;

typedef struct mt_source {
  mt_corpus_format format; /* never auto */
  bool single;             /* the path is a file, so its name does not matter */
  int64_t n, ignored;      /* files; other files in the folder */
  mt_source_file *files;
} mt_source;
void mt_source_destroy(mt_source *source);

/**
 * Lists options->path: a file, an archive, or a folder with those below it (hidden files
 * left out). Not collective.
 * Errors   MT_ERR_INPUT: no such path; a folder without files of the format; format auto
 *          and no way to tell
 */
mt_status mt_source_list(const mt_corpus_options *options, mt_source *out);

/* The same on all ranks; rank 0 lists. */
mt_status mt_source_share(const mt_comm *comm, const mt_corpus_options *options,
                          mt_source *out);

/* Adds names, sizes and times to a hash: changes when a file was touched. */
void mt_source_hash(const mt_source *source, mt_hash *hash);

const char *mt_format_name(mt_corpus_format format);    /* "reuters-sgml", ... */
const char *mt_format_endings(mt_corpus_format format); /* ".sgm .sgml", for messages */

/* Is a file or a member of an archive of this name one of the format's? */
bool mt_format_takes(mt_corpus_format format, const char *name);

/* The folder that a file lies in ("a/1987-03/x.txt": "1987-03"), into out; "" if none. */
void mt_folder_of(const char *name, char *out, size_t size);

#endif
