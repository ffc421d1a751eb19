/* A file's checksum: its last line, which says what the bytes before it hash to. So one flipped
 * byte is seen wherever it lies: in the numbers, in texts, in what HDF5 keeps for itself. */
#ifndef MT_STORE_CHECKSUM_H
#define MT_STORE_CHECKSUM_H
#include "base/hash.h"
#include "comm/comm.h"

/**
 * Ends a file with its checksum. Collective: each rank reads its share of the bytes, which
 * all ranks must see.
 * Errors   MT_ERR_IO, MT_ERR_MEMORY, agreed
 * Source   XXH3 (128 bits) of each block of 1 MiB, seeded with the block's number; the four
 *          32-bit words of the hashes are added modulo 2^32, so that any number of ranks and
 *          threads gives the same
 */
mt_status mt_checksum_append(const mt_comm *comm, const char *path);

/**
 * Is there a file with its checksum? If one is there that has not, whatever the reason, that is
 * said (mt_warn). The same answer on all ranks. Collective likewise; mt_comm_self reads all of it.
 * Errors   MT_ERR_MEMORY, agreed
 */
mt_status mt_checksum_verify(const mt_comm *comm, const char *path, bool *whole_out);

/* The checksum of a small file of another form, as `xxhsum -H2` prints it; empty if it cannot
 * be read. Not collective. */
mt_fingerprint mt_checksum_of(const char *path);

#endif
