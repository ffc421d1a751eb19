/* Dates as collections write them, and the periods they fall in. */
#ifndef MT_CORPUS_DATE_H
#define MT_CORPUS_DATE_H
#include "deck/parameters.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0: not known. */
typedef struct mt_date {
  int year, quarter, month, week, day; /* 1..9999, 1..4, 1..12, 1..53, 1..31 */
} mt_date;

/**
 * Reads "26-FEB-1987 15:01:01.79" (month in any case; what follows the year does not
 * matter), "1987-02-26", "1987-02-26T15:01:01Z", "19870226", "1987-02", "1987",
 * "1987-Q1", "1987-W09"; blanks around them are fine. False: it is none of these, or
 * there is no such day (30-FEB).
 */
bool mt_date_read(const char *text, size_t size, mt_date *out);

/* The period that holds a date, as a number that grows with time; false if the date is too
 * coarse for that ("1987" has no month). Weeks are ISO 8601's. */
bool mt_period_of(mt_period_kind kind, const mt_date *date, int64_t *key_out);

enum { MT_PERIOD_NAME = 16 };
/* "1987-03", "1987", "1987-Q1", "1987-W09", "1987-03-17". */
void mt_period_name(mt_period_kind kind, int64_t key, char name_out[MT_PERIOD_NAME]);

/* The period of that exact name; false if it is no name of this kind. */
bool mt_period_named(mt_period_kind kind, const char *name, size_t size,
                     int64_t *key_out);

#endif
