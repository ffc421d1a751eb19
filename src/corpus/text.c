#include "corpus/decode.h"
#include "corpus/readers.h"

mt_status mt_reader_text(const mt_piece *piece, const mt_corpus_options *options,
                         mt_sink sink, void *context)
{
  mt_status status = MT_OK;
  mt_decoder decoder = {0};
  mt_span text = {piece->bytes, piece->size};
  bool valid;

  MT_TRY(mt_decoder_open(options->encoding, MT_FALLBACK_NONE, &decoder));
  if (text.size >= 3 && memcmp(text.at, "\xEF\xBB\xBF", 3) == 0)
    text.at += 3, text.size -= 3;
  MT_TRY(mt_decode(&decoder, text, &text, &valid));
  if (!valid) {
    status =
        mt_piece_damaged(piece, options, sink, context, MT_SKIP_ENCODING, 0, 0,
                         "not %s text (corpus.encoding names another)", decoder.name);
    goto done;
  }
  mt_record record = {.offset = piece->offset, .text = text};
  record.id = (mt_span){piece->name, strlen(piece->name)};
  if (piece->folder != NULL)
    record.date = (mt_span){piece->folder, strlen(piece->folder)};
  MT_TRY(sink(context, &record));
done:
  mt_decoder_close(&decoder);
  return status;
}
