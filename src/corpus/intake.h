/* Each rank's share of the collection, as pieces of whole records. */
#ifndef MT_CORPUS_INTAKE_H
#define MT_CORPUS_INTAKE_H
#include "comm/comm.h"
#include "corpus/readers.h"
#include "corpus/source.h"

/* member: where the records come from, a file or a member of an archive, by a number that
 * means something on this rank alone. */
typedef mt_status (*mt_intake_sink)(void *context, int64_t member,
                                    const mt_piece *piece);

enum { MT_PIECE_BYTES = 1 << 20 };

/**
 * Gives the sink every piece that is this rank's: over all ranks each record is in exactly
 * one piece, those of a member in order. Plain files are shared by bytes, texts as wholes.
 * Compressed files and archives are dealt as wholes, each to a rank that reads it and hands
 * pieces on to those who have nothing else to do. A piece is borrowed until the sink returns.
 * Collective.
 * piece_bytes  what a piece should have at least; tests make it small
 * place_out    of each member, its place in the input: by file, then by name; the caller owns
 *              it
 * Errors       MT_ERR_INPUT: a file that cannot be read, a damaged or cut archive; what
 *              the sink returned; MT_STOPPED once a signal has come to some process
 */
mt_status mt_intake(const mt_comm *comm, const mt_source *source, size_t piece_bytes,
                    mt_intake_sink sink, void *context, int64_t **place_out);

#endif
