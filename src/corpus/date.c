#include "corpus/date.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_leap(int year)
{
  return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_of(int year, int month)
{
  static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return days[month - 1] + (month == 2 && is_leap(year));
}

static int day_of_year(int year, int month, int day)
{
  for (int m = 1; m < month; m++) day += days_of(year, m);
  return day;
}

/* Monday 1 .. Sunday 7 of the first of January. */
static int first_weekday(int year)
{
  int before = year - 1;
  return (before + before / 4 - before / 100 + before / 400) % 7 + 1;
}

static int weeks_of(int year)
{
  int weekday = first_weekday(year);
  return weekday == 4 || (weekday == 3 && is_leap(year)) ? 53 : 52;
}

/* ISO 8601: a week belongs to the year that holds its Thursday. */
static void week_of(const mt_date *date, int *year_out, int *week_out)
{
  int day = day_of_year(date->year, date->month, date->day);
  int weekday = (first_weekday(date->year) + day - 2) % 7 + 1;
  int week = (day - weekday + 10) / 7, year = date->year;
  if (week < 1)
    week = weeks_of(--year);
  else if (week > weeks_of(year))
    week = 1, year++;
  *year_out = year;
  *week_out = week;
}

/* ---- reading ----------------------------------------------------------------------------- */

typedef struct cursor {
  const char *at;
  size_t left;
} cursor;

static bool take_char(cursor *c, char wanted)
{
  if (c->left == 0 || c->at[0] != wanted) return false;
  c->at++, c->left--;
  return true;
}

/* Between `least` and `most` digits, and no digit after them. */
static bool take_number(cursor *c, int least, int most, int *out)
{
  int digits = 0, value = 0;
  while (c->left > 0 && isdigit((unsigned char)c->at[0])) {
    if (++digits > most) return false;
    value = value * 10 + (c->at[0] - '0');
    c->at++, c->left--;
  }
  *out = value;
  return digits >= least;
}

static bool take_month_name(cursor *c, int *out)
{
  static const char names[] = "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC";
  if (c->left < 3) return false;
  for (int m = 0; m < 12; m++)
    if (strncasecmp(c->at, names + 3 * m, 3) == 0) {
      c->at += 3, c->left -= 3;
      *out = m + 1;
      return true;
    }
  return false;
}

static bool is_day(const mt_date *date)
{
  return date->year >= 1 && date->month >= 1 && date->month <= 12 && date->day >= 1 &&
         date->day <= days_of(date->year, date->month);
}

/* 26-FEB-1987, then anything but a digit. */
static bool read_newswire(cursor c, mt_date *out)
{
  mt_date date = {0};
  if (!take_number(&c, 1, 2, &date.day) || !take_char(&c, '-')) return false;
  if (!take_month_name(&c, &date.month) || !take_char(&c, '-')) return false;
  if (!take_number(&c, 4, 4, &date.year) || !is_day(&date)) return false;
  *out = date;
  return true;
}

static bool read_compact(cursor c, mt_date *out)
{
  int number;
  if (!take_number(&c, 8, 8, &number)) return false;
  mt_date date = {
      .year = number / 10000, .month = number / 100 % 100, .day = number % 100};
  if (!is_day(&date)) return false;
  *out = date;
  return true;
}

/* 1987, 1987-Q1, 1987-W09, 1987-02 to their end; 1987-02-26, then anything but a digit. */
static bool read_iso(cursor c, mt_date *out)
{
  mt_date date = {0};
  bool good;
  if (!take_number(&c, 4, 4, &date.year) || date.year < 1) return false;
  if (c.left == 0) {
    good = true;
  } else if (!take_char(&c, '-')) {
    return false;
  } else if (take_char(&c, 'Q')) {
    good = take_number(&c, 1, 1, &date.quarter) && date.quarter >= 1 &&
           date.quarter <= 4 && c.left == 0;
  } else if (take_char(&c, 'W')) {
    good = take_number(&c, 2, 2, &date.week) && date.week >= 1 &&
           date.week <= weeks_of(date.year) && c.left == 0;
  } else {
    good = take_number(&c, 2, 2, &date.month) && date.month >= 1 && date.month <= 12;
    if (good && c.left > 0)
      good = take_char(&c, '-') && take_number(&c, 2, 2, &date.day) && is_day(&date);
  }
  if (good) *out = date;
  return good;
}

bool mt_date_read(const char *text, size_t size, mt_date *out)
{
  cursor c = {text, size};
  while (c.left > 0 && isspace((unsigned char)c.at[0])) c.at++, c.left--;
  while (c.left > 0 && isspace((unsigned char)c.at[c.left - 1])) c.left--;
  return read_newswire(c, out) || read_iso(c, out) || read_compact(c, out);
}

/* ---- periods ----------------------------------------------------------------------------- */

bool mt_period_of(mt_period_kind kind, const mt_date *date, int64_t *key_out)
{
  int year = date->year, week = date->week;
  int quarter = date->month > 0 ? (date->month + 2) / 3 : date->quarter;
  switch (kind) {
  case MT_PERIOD_YEAR: /* a week may lie in two years: only its own day tells */
    *key_out = year;
    return date->week == 0;
  case MT_PERIOD_QUARTER:
    *key_out = year * 10 + quarter;
    return quarter > 0;
  case MT_PERIOD_MONTH:
    *key_out = year * 100 + date->month;
    return date->month > 0;
  case MT_PERIOD_WEEK:
    if (date->day > 0) week_of(date, &year, &week);
    *key_out = year * 100 + week;
    return week > 0;
  case MT_PERIOD_DAY:
    *key_out = year * 10000 + date->month * 100 + date->day;
    return date->day > 0;
  }
  return false;
}

void mt_period_name(mt_period_kind kind, int64_t key, char name_out[MT_PERIOD_NAME])
{
  int k = (int)key;
  switch (kind) {
  case MT_PERIOD_YEAR:
    snprintf(name_out, MT_PERIOD_NAME, "%04d", k);
    break;
  case MT_PERIOD_QUARTER:
    snprintf(name_out, MT_PERIOD_NAME, "%04d-Q%d", k / 10, k % 10);
    break;
  case MT_PERIOD_MONTH:
    snprintf(name_out, MT_PERIOD_NAME, "%04d-%02d", k / 100, k % 100);
    break;
  case MT_PERIOD_WEEK:
    snprintf(name_out, MT_PERIOD_NAME, "%04d-W%02d", k / 100, k % 100);
    break;
  case MT_PERIOD_DAY:
    snprintf(name_out, MT_PERIOD_NAME, "%04d-%02d-%02d", k / 10000, k / 100 % 100,
             k % 100);
    break;
  }
}

bool mt_period_named(mt_period_kind kind, const char *name, size_t size,
                     int64_t *key_out)
{
  mt_date date;
  int64_t key;
  char written[MT_PERIOD_NAME];
  if (!mt_date_read(name, size, &date) || !mt_period_of(kind, &date, &key))
    return false;
  mt_period_name(kind, key, written);
  if (strlen(written) != size || memcmp(written, name, size) != 0) return false;
  *key_out = key;
  return true;
}
