/* A rank's share of the collection, as pieces of whole records. Not collective: a rank
 * needs to know only its number and how many there are. */
#ifndef MT_CORPUS_INTAKE_H
#define MT_CORPUS_INTAKE_H
#include "corpus/readers.h"
#include "corpus/source.h"

/* Where records come from: a file, or a member of an archive. Numbered as they are met,
 * the same on all ranks. */
typedef struct mt_members {
  int64_t n, capacity;
  struct mt_member {
    int64_t file; /* in the source */
    char *name;   /* owned */
  } * list;
} mt_members;
void mt_members_destroy(mt_members *members);

/* The place of each member in the input: by file, then by name. place_out (members->n). */
mt_status mt_members_order(const mt_members *members, int64_t *place_out);

typedef mt_status (*mt_piece_sink)(void *context, int64_t member,
                                   const mt_piece *piece);

enum { MT_PIECE_BYTES = 1 << 20 };

/**
 * Gives the sink every piece that is this rank's: over all ranks each record is in exactly
 * one piece. Plain files are shared by bytes (jsonl, reuters-sgml) or as wholes (csv, text);
 * compressed files and archives are read by every rank, which picks out every size-th
 * piece. A piece is borrowed until the sink returns.
 * piece_bytes  what a piece should have at least; tests make it small
 * members_out  all members, those of other ranks too
 * Errors       MT_ERR_INPUT: a file that cannot be read, a damaged or cut archive; what
 *              the sink returned; MT_STOPPED once a signal has come to this process
 */
mt_status mt_intake(const mt_source *source, int rank, int size, size_t piece_bytes,
                    mt_piece_sink sink, void *context, mt_members *members_out);

#endif
