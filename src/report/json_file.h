/* JSON files that tell when they are damaged: their last member, "checksum", is that of all
 * their bytes with zeros in its own place. */
#ifndef MT_REPORT_JSON_FILE_H
#define MT_REPORT_JSON_FILE_H
#include "base/status.h"

#include <jansson.h>

/* Writes an object whole (mt_file_replace); it gets the member. MT_ERR_MEMORY, MT_ERR_IO. */
mt_status mt_json_save(json_t *object, const char *path);

/* What mt_json_save wrote, new reference. NULL if it is not there, is damaged or cannot be
 * read; the last two are said (mt_warn). */
json_t *mt_json_load(const char *path);

#endif
