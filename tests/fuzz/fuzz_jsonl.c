/* The JSON Lines reader on any bytes: records of valid UTF-8 or an error, never a crash; and
 * strict="false" skips, it does not fail. */
#include "fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
  return mt_fuzz_reader(mt_reader_jsonl, bytes, size);
}
