/* The deck's reader on any bytes: an error or parameters in range, never a crash. What it
 * takes, it takes again from the text of its values. */
#include "base/log.h"
#include "deck/deck.h"
#include "deck/table.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  mt_log_setup(1, 2, MT_LOG_ERROR); /* errors of all ranks alike are rank 0's to say */
  mt_log_replicated(true);
  return 0;
}

static void read_again(const mt_parameters *parameters, mt_parameters *again)
{
  for (const mt_parameter *p = mt_parameter_table; p->section != NULL; p++) {
    char why[MT_SAID_LONGEST], *text = mt_parameter_text(p, parameters);
    if (text == NULL) abort();
    if (text[0] != '\0' && mt_parameter_read(p, text, again, why) != MT_OK) abort();
    free(text);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
  mt_parameters parameters = {0}, again = {0};
  if (mt_deck_parse("fuzz/deck.xml", (const char *)bytes, size, &parameters) != MT_OK)
    return 0;
  if (mt_parameters_default(&again) != MT_OK) abort();
  read_again(&parameters, &again);
  (void)mt_parameters_check(&parameters);
  json_t *json = mt_parameters_json(&parameters);
  if (json == NULL) abort();
  json_decref(json);
  mt_parameters_destroy(&parameters);
  mt_parameters_destroy(&again);
  return 0;
}
