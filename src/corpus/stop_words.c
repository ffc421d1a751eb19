#include "corpus/stop_words.h"
#include "corpus/tokens.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static const char *const english[] = {
#include "corpus/stop_words.inc"
};

static mt_status add_words(void *context, int64_t n, const mt_span *words)
{
  mt_status status = MT_OK;
  int64_t number;
  for (int64_t w = 0; w < n; w++)
    MT_TRY(mt_terms_add(context, words[w].at, words[w].size, &number));
done:
  return status;
}

static mt_status add_english(mt_terms *out)
{
  mt_status status = MT_OK;
  int64_t number;
  for (size_t w = 0; w < sizeof english / sizeof english[0]; w++)
    MT_TRY(mt_terms_add(out, english[w], strlen(english[w]), &number));
done:
  return status;
}

static mt_status read_all(const char *path, mt_buffer *out)
{
  mt_status status = MT_OK;
  FILE *file = NULL;
  size_t got;
  struct stat about;
  MT_REQUIRE(
      stat(path, &about) != 0 || S_ISREG(about.st_mode), MT_ERR_INPUT,
      "corpus.stop_words=\"%s\" is no file; give \"none\", \"english\" or a file "
      "with a word a line",
      path); /* a device or a pipe may have no end */
  file = fopen(path, "rb");
  MT_REQUIRE(
      file != NULL, MT_ERR_INPUT,
      "corpus.stop_words=\"%s\": %s; give \"none\", \"english\" or a file with a word "
      "a line",
      path, strerror(errno));
  do {
    MT_TRY(mt_buffer_reserve(out, 1 << 16));
    got = fread(out->bytes + out->size, 1, 1 << 16, file);
    out->size += (int64_t)got;
  } while (got > 0);
  MT_REQUIRE(!ferror(file), MT_ERR_INPUT, "corpus.stop_words=\"%s\": cannot be read",
             path);
done:
  if (file != NULL) fclose(file);
  return status;
}

mt_status mt_stop_words_load(const mt_comm *comm, const mt_corpus_options *options,
                             mt_terms *out)
{
  mt_status status = MT_OK;
  mt_terms words = {0};
  mt_buffer text = {0}, scratch = {0};
  if (strcmp(options->stop_words, "english") == 0) {
    MT_TRY(mt_agree(comm, add_english(&words)));
  } else if (strcmp(options->stop_words, "none") != 0) {
    MT_TRY(
        mt_agree(comm, comm->rank == 0 ? read_all(options->stop_words, &text) : MT_OK));
    size_t size = (size_t)text.size;
    MT_TRY(mt_bcast_bytes(comm, 0, &size, &text.bytes));
    MT_TRY(mt_agree(comm, mt_tokenize(text.bytes, size, options->lowercase, &scratch,
                                      add_words, &words)));
  }
  *out = words;
  memset(&words, 0, sizeof words);
done:
  mt_terms_destroy(&words);
  mt_buffer_destroy(&text);
  mt_buffer_destroy(&scratch);
  return status;
}
