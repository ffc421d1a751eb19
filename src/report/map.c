#include "report/map.h"
#include "base/log.h"
#include "base/memory.h"
#include "report/draw.h"
#include "report/glyphs.h"
#include "report/place.h"
#include "report/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_LABELS = 400,  /* more cannot be read on one page */
  TERM_COLUMNS = 24,  /* a longer term is cut on the map */
  LABEL_COLUMNS = 60, /* so is a longer label */
  MOST_COMPARED =
      5000, /* meta-topics that keep off one's colour: not all of a million */
  N_HUES = 7,
  N_COLOURS = 3 * N_HUES
};

/* Okabe and Ito's colours (without black), which colour-blind readers tell apart; then
 * darker and lighter ones. */
static const int32_t hues[N_HUES] = {0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7,
                                     0x56B4E9, 0xE69F00, 0xF0E442};
static const int32_t noise_colour = 0xB8B8B8;

/* gnuplot's filled point types; the outline is the number before. */
static const int kind_shape[MT_META_N_KINDS] = {7, 9,
                                                13}; /* circle, triangle, diamond */
static const double kind_scale[MT_META_N_KINDS] = {1.0, 1.15,
                                                   1.1}; /* to look equally large */
static const char *const kind_meaning[MT_META_N_KINDS] = {
    "persistent: in several periods", "local: one period, several seeds",
    "single-fit: one fit only"};

/* Everything that is decided before a line of the script is written. Lengths in pixels. */
typedef struct mt_drawing {
  const mt_findings *findings;
  const mt_meta_topic *meta;
  double width, height, unit; /* unit: 1 on a page of 1200 x 900 */
  mt_box frame;
  double *drawn;           /* (N, 2) positions after narrowing */
  bool narrowed;           /* was an empty band drawn narrower? */
  double low[2], scale[2]; /* pixels from the frame's corner: (x - low) scale */
  double point_size;       /* radius */
  mt_point *points;        /* (N) */
  int32_t *colours;        /* (M) 0xRRGGBB */
  int64_t n_labels;        /* the largest meta-topics */
  int64_t *order;          /* (M) meta-topics, largest first */
  mt_label_place *places;  /* (n_labels) in that order */
  char **texts[2];         /* (n_labels) whole and shorter */
  double font;             /* of the labels */
} mt_drawing;

static void drawing_destroy(mt_drawing *d)
{
  for (int which = 0; which < 2; which++) {
    for (int64_t i = 0; d->texts[which] != NULL && i < d->n_labels; i++)
      free(d->texts[which][i]);
    free(d->texts[which]);
  }
  free(d->drawn);
  free(d->points);
  free(d->colours);
  free(d->order);
  free(d->places);
}

/* ---- where points are -------------------------------------------------------------- */

static void frame_page(mt_drawing *d, const mt_map_options *options)
{
  d->width = (double)options->width;
  d->height = (double)options->height;
  d->unit = fmin(d->width / 1200.0, d->height / 900.0);
  d->unit = fmin(fmax(d->unit, 0.6), 5.0);
  double side = 14.0 * d->unit, top = 66.0 * d->unit, bottom = 62.0 * d->unit;
  d->frame = (mt_box){side, top, fmax(d->width - 2 * side, 1.0),
                      fmax(d->height - top - bottom, 1.0)};
}

typedef struct mt_coordinate {
  double value;
  int64_t topic;
} mt_coordinate;

static int compare_coordinates(const void *a, const void *b)
{
  const mt_coordinate *x = a, *y = b;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  return x->topic < y->topic ? -1 : x->topic > y->topic;
}

/* A group far from all others would leave the page to an empty band. How wide that is means
 * nothing in UMAP, so no band without points takes more than so much of an axis. */
static mt_status narrow_axis(mt_drawing *d, int axis)
{
  static const double widest = 0.15;
  mt_status status = MT_OK;
  const mt_findings *f = d->findings;
  int64_t n = f->n_topics;
  mt_coordinate *sorted = NULL;
  MT_NEW(sorted, n);
  for (int64_t i = 0; i < n; i++)
    sorted[i] = (mt_coordinate){f->positions[2 * i + axis], i};
  qsort(sorted, (size_t)n, sizeof *sorted, compare_coordinates);
  double cut = 0.0,
         most = n > 0 ? widest * (sorted[n - 1].value - sorted[0].value) : 0.0;
  for (int64_t i = 0; i < n; i++) {
    double gap = i > 0 ? sorted[i].value - sorted[i - 1].value : 0.0;
    if (gap > most) cut += gap - most, d->narrowed = true;
    d->drawn[2 * sorted[i].topic + axis] = sorted[i].value - cut;
  }
done:
  free(sorted);
  return status;
}

static mt_status narrow_bands(mt_drawing *d)
{
  enum { FEW = 30 }; /* so few points are bands and nothing else */
  mt_status status = MT_OK;
  const mt_findings *f = d->findings;
  MT_NEW(d->drawn, 2 * f->n_topics);
  memcpy(d->drawn, f->positions, 2 * (size_t)f->n_topics * sizeof *d->drawn);
  for (int axis = 0; axis < 2 && f->n_topics >= FEW; axis++)
    MT_TRY(narrow_axis(d, axis));
done:
  return status;
}

/* Both axes have one scale, since distances are what the map shows; but where a page would
 * stay empty, one may be stretched by half. */
static void fit_points(mt_drawing *d)
{
  static const double room = 0.88, most_stretched = 1.5;
  const mt_findings *f = d->findings;
  const double page[2] = {d->frame.w, d->frame.h};
  double low[2] = {0, 0}, high[2] = {0, 0}, scale[2];
  for (int64_t i = 0; i < f->n_topics; i++)
    for (int axis = 0; axis < 2; axis++) {
      double at = d->drawn[2 * i + axis];
      low[axis] = i == 0 ? at : fmin(low[axis], at);
      high[axis] = i == 0 ? at : fmax(high[axis], at);
    }
  for (int axis = 0; axis < 2; axis++)
    scale[axis] = high[axis] > low[axis] ? room * page[axis] / (high[axis] - low[axis])
                                         : INFINITY;
  double common = fmin(scale[0], scale[1]);
  if (!(common < INFINITY)) common = 1.0; /* all in one place */
  for (int axis = 0; axis < 2; axis++) {
    d->scale[axis] = fmin(scale[axis], common * most_stretched);
    d->low[axis] = 0.5 * (low[axis] + high[axis]) - 0.5 * page[axis] / d->scale[axis];
  }
}

static mt_point to_page(const mt_drawing *d, const double *at)
{
  return (mt_point){d->frame.x + (at[0] - d->low[0]) * d->scale[0],
                    d->frame.y + d->frame.h - (at[1] - d->low[1]) * d->scale[1]};
}

static mt_status lay_points(mt_drawing *d)
{
  mt_status status = MT_OK;
  const mt_findings *f = d->findings;
  MT_NEW(d->points, f->n_topics);
  MT_TRY(narrow_bands(d));
  fit_points(d);
  for (int64_t i = 0; i < f->n_topics; i++) d->points[i] = to_page(d, &d->drawn[2 * i]);
  double crowd = sqrt(300.0 / ((double)f->n_topics + 1.0));
  d->point_size = d->unit * fmin(fmax(5.0 * crowd, 1.2), 5.0);
done:
  return status;
}

/* ---- colours ------------------------------------------------------------------------ */

static int32_t mix(int32_t colour, int32_t other, double share)
{
  int32_t mixed = 0;
  for (int shift = 0; shift <= 16; shift += 8) {
    double a = (colour >> shift) & 255, b = (other >> shift) & 255;
    mixed |= (int32_t)lround(a + (b - a) * share) << shift;
  }
  return mixed;
}

static int32_t palette(int64_t i)
{
  int32_t hue = hues[i % N_HUES];
  if (i < N_HUES) return hue;
  return i < 2 * N_HUES ? mix(hue, 0x000000, 0.45) : mix(hue, 0xFFFFFF, 0.5);
}

/* For thin lines: a light colour is darkened until it shows on white. */
static int32_t for_lines(int32_t colour)
{
  int sum = (colour >> 16 & 255) + 2 * (colour >> 8 & 255) + (colour & 255);
  return sum > 600 ? mix(colour, 0x000000, 0.3) : colour;
}

typedef struct mt_ranked {
  int64_t size, meta;
} mt_ranked;

static int compare_ranked(const void *a, const void *b)
{
  const mt_ranked *x = a, *y = b;
  if (x->size != y->size) return x->size > y->size ? -1 : 1;
  return x->meta < y->meta ? -1 : x->meta > y->meta;
}

static mt_status rank_meta(mt_drawing *d)
{
  mt_status status = MT_OK;
  int64_t n = d->findings->n_meta;
  mt_ranked *ranked = NULL;
  MT_NEW(ranked, n);
  MT_NEW(d->order, n);
  for (int64_t m = 0; m < n; m++) ranked[m] = (mt_ranked){d->meta[m].size, m};
  qsort(ranked, (size_t)n, sizeof *ranked, compare_ranked);
  for (int64_t i = 0; i < n; i++) d->order[i] = ranked[i].meta;
done:
  free(ranked);
  return status;
}

static mt_point mean_place(const mt_drawing *d, const mt_meta_topic *meta)
{
  mt_point mean = {0, 0};
  for (int64_t i = 0; i < meta->size; i++) {
    mean.x += d->points[meta->members[i]].x / (double)meta->size;
    mean.y += d->points[meta->members[i]].y / (double)meta->size;
  }
  return mean;
}

/* The member that is nearest to their mean: a label's line ends on a point. */
static mt_point central_place(const mt_drawing *d, const mt_meta_topic *meta)
{
  mt_point mean = mean_place(d, meta), best = mean;
  double nearest = INFINITY;
  for (int64_t i = 0; i < meta->size; i++) {
    mt_point at = d->points[meta->members[i]];
    double distance = hypot(at.x - mean.x, at.y - mean.y);
    if (distance < nearest) nearest = distance, best = at;
  }
  return best;
}

/* Each, largest first, takes the colour whose nearest owner is farthest away; as long as
 * colours are left, one of its own. */
static mt_status choose_colours(mt_drawing *d)
{
  mt_status status = MT_OK;
  int64_t n = d->findings->n_meta;
  int64_t *taken = NULL;
  mt_point *centres = NULL;
  MT_NEW(taken, n);
  MT_NEW(centres, n);
  MT_NEW(d->colours, n);
  for (int64_t i = 0; i < n; i++) {
    double nearest[N_COLOURS];
    int64_t best = 0;
    centres[i] = mean_place(d, &d->meta[d->order[i]]);
    for (int64_t c = 0; c < N_COLOURS; c++) nearest[c] = INFINITY;
    for (int64_t j = i > MOST_COMPARED ? i - MOST_COMPARED : 0; j < i; j++) {
      double distance = hypot(centres[i].x - centres[j].x, centres[i].y - centres[j].y);
      nearest[taken[j]] = fmin(nearest[taken[j]], distance);
    }
    for (int64_t c = 1; c < N_COLOURS; c++)
      if (nearest[c] > nearest[best]) best = c;
    taken[i] = best;
    d->colours[d->order[i]] = palette(best);
  }
done:
  free(centres);
  free(taken);
  return status;
}

/* ---- labels ------------------------------------------------------------------------- */

/* The first n terms of a label as the map shows them. */
static mt_status label_text(const mt_drawing *d, const mt_meta_topic *meta,
                            const mt_scored_term *scored, int64_t n, char **text_out)
{
  mt_status status = MT_OK;
  char *joined = NULL, *term = NULL;
  MT_NEW(joined, n * (4 * 16 * TERM_COLUMNS) + 8);
  char *at = joined;
  for (int64_t i = 0; i < n; i++) {
    MT_TRY(mt_text_drawable(d->findings->terms[scored[i].term], TERM_COLUMNS, &term));
    if (i > 0) at = stpcpy(at, ", ");
    at = stpcpy(at, term);
    free(term);
    term = NULL;
  }
  if (n < meta->label_terms) stpcpy(at, " \xE2\x80\xA6");
  MT_TRY(mt_text_drawable(joined, LABEL_COLUMNS, text_out));
done:
  free(term);
  free(joined);
  return status;
}

static mt_status write_texts(mt_drawing *d, const mt_map_options *options)
{
  mt_status status = MT_OK;
  for (int which = 0; which < 2; which++) MT_NEW(d->texts[which], d->n_labels);
  for (int64_t i = 0; i < d->n_labels; i++) {
    const mt_meta_topic *meta = &d->meta[d->order[i]];
    const mt_scored_term *scored = mt_meta_topic_terms(meta, options->label_method);
    int64_t n = meta->label_terms;
    MT_TRY(label_text(d, meta, scored, n, &d->texts[0][i]));
    MT_TRY(label_text(d, meta, scored, n > 1 ? 1 : n, &d->texts[1][i]));
  }
done:
  return status;
}

static void size_labels(mt_drawing *d, double font)
{
  d->font = font;
  for (int64_t i = 0; i < d->n_labels; i++) {
    for (int which = 0; which < 2; which++)
      d->places[i].width[which] = mt_text_width(d->texts[which][i], font) + 0.9 * font;
    d->places[i].height = 1.5 * font;
  }
}

/* Of the frame, the share that labels take. */
static double share_covered(const mt_drawing *d)
{
  double area = 0.0;
  for (int64_t i = 0; i < d->n_labels; i++)
    area += d->places[i].width[0] * d->places[i].height;
  return area / (d->frame.w * d->frame.h);
}

static int64_t count_choice(const mt_drawing *d, int choice)
{
  int64_t count = 0;
  for (int64_t i = 0; i < d->n_labels; i++) count += d->places[i].choice == choice;
  return count;
}

/* The largest letters that leave room for all labels; the smallest if none do. */
static mt_status place_labels(mt_drawing *d)
{
  static const double largest = 15.0, smallest = 9.0, most_covered = 0.3;
  mt_status status = MT_OK;
  for (double font = largest; font >= smallest; font -= 1.0) {
    size_labels(d, font * d->unit);
    if (font > smallest && share_covered(d) > most_covered) continue;
    MT_TRY(mt_labels_place(d->frame, d->findings->n_topics, d->points, d->point_size,
                           d->n_labels, d->places));
    if (count_choice(d, 0) == d->n_labels) break;
  }
done:
  return status;
}

static mt_status lay_labels(mt_drawing *d, const mt_map_options *options)
{
  mt_status status = MT_OK;
  d->n_labels = d->findings->n_meta < MOST_LABELS ? d->findings->n_meta : MOST_LABELS;
  MT_NEW(d->places, d->n_labels);
  for (int64_t i = 0; i < d->n_labels; i++)
    d->places[i].anchor = central_place(d, &d->meta[d->order[i]]);
  MT_TRY(write_texts(d, options));
  MT_TRY(place_labels(d));
done:
  return status;
}

static mt_status drawing_make(mt_drawing *d, const mt_map_options *options)
{
  mt_status status = MT_OK;
  frame_page(d, options);
  MT_TRY(lay_points(d));
  MT_TRY(rank_meta(d));
  MT_TRY(choose_colours(d));
  MT_TRY(lay_labels(d, options));
done:
  return status;
}

/* ---- map.dat ------------------------------------------------------------------------ */

static void print_point(const mt_drawing *d, int64_t i, FILE *out)
{
  const mt_findings *f = d->findings;
  int64_t m = f->labels[i];
  mt_meta_kind kind = m < 0 ? MT_META_PERSISTENT : d->meta[m].kind;
  fprintf(out, "%.9g %.9g %.3f %d %d %lld %lld %.9g %.9g\n", d->drawn[2 * i],
          d->drawn[2 * i + 1], m < 0 ? 0.6 : kind_scale[kind], kind_shape[kind],
          m < 0 ? noise_colour : d->colours[m], (long long)m, (long long)i,
          f->positions[2 * i], f->positions[2 * i + 1]);
}

/* Noise, two empty lines, then the members of meta-topics. */
static void print_data(const mt_drawing *d, FILE *out)
{
  const mt_findings *f = d->findings;
  fputs("# The points of map.gp: first noise, then members of meta-topics.\n"
        "# x y size shape colour meta_topic topic x_of_umap y_of_umap\n",
        out);
  for (int64_t i = 0; i < f->n_topics; i++)
    if (f->labels[i] < 0) print_point(d, i, out);
  if (mt_findings_noise(f) > 0) fputs("\n\n", out);
  for (int64_t i = 0; i < f->n_topics; i++)
    if (f->labels[i] >= 0) print_point(d, i, out);
}

/* ---- map.gp ------------------------------------------------------------------------- */

/* Fractions of the page, from below, as gnuplot's "screen" has them. */
static void print_place(const mt_drawing *d, double x, double y, FILE *out)
{
  fprintf(out, "screen %.6f, screen %.6f", x / d->width, 1.0 - y / d->height);
}

/* A text; align: left, center or right. */
static void print_text(const mt_drawing *d, const char *text, double x, double y,
                       const char *align, double font, const char *colour, FILE *out)
{
  fputs("set label ", out);
  mt_gnuplot_quote(text, out);
  fputs(" at ", out);
  print_place(d, x, y, out);
  fprintf(out, " %s noenhanced font ',%.1f' tc rgb '%s' front\n", align, font, colour);
}

static double font_that_fits(const char *text, double font, double width)
{
  double wide = mt_text_width(text, font);
  return wide > width ? font * width / wide : font;
}

static void print_title(const mt_drawing *d, FILE *out)
{
  const mt_findings *f = d->findings;
  char *name = NULL, title[1024], line[512], axes[128] = "";
  double u = d->unit, room = d->width - 24.0 * u;
  if (mt_text_drawable(f->corpus, 80, &name) != MT_OK) return;
  snprintf(title, sizeof title, "Meta-topics of %s", name);
  free(name);
  if (f->n_axes == 1)
    snprintf(axes, sizeof axes, "; one axis");
  else if (f->n_axes > 2)
    snprintf(axes, sizeof axes, "; axes 1 and 2 of %lld", (long long)f->n_axes);
  int64_t noise = mt_findings_noise(f);
  snprintf(
      line, sizeof line,
      "%lld topic%s from %lld period%s and %lld seed%s: %lld meta-topic%s, %.0f %% "
      "noise%s",
      (long long)f->n_topics, f->n_topics == 1 ? "" : "s", (long long)f->n_periods,
      f->n_periods == 1 ? "" : "s", (long long)f->n_seeds, f->n_seeds == 1 ? "" : "s",
      (long long)f->n_meta, f->n_meta == 1 ? "" : "s",
      f->n_topics > 0 ? 100.0 * (double)noise / (double)f->n_topics : 0.0, axes);
  print_text(d, title, 0.5 * d->width, 22 * u, "center",
             font_that_fits(title, 22 * u, room), "#202020", out);
  print_text(d, line, 0.5 * d->width, 49 * u, "center",
             font_that_fits(line, 14 * u, room), "#505050", out);
}

/* One entry of the legend at x; how wide it is. out NULL: only how wide. */
static double print_entry(const mt_drawing *d, const char *text, int shape, double size,
                          const char *colour, double x, double font, FILE *out)
{
  double y = d->frame.y + d->frame.h + 24.0 * d->unit;
  if (out != NULL) {
    fputs("set label '' at ", out);
    print_place(d, x + 0.5 * font, y, out);
    fprintf(out, " point pt %d ps %.3f lc rgb '%s' front\n", shape, size, colour);
    print_text(d, text, x + 1.4 * font, y, "left", font, "#202020", out);
  }
  return 1.4 * font + mt_text_width(text, font) + 1.8 * font;
}

/* All entries from x on; how wide they are together. */
static double print_entries(const mt_drawing *d, double x, double font, FILE *out)
{
  const mt_findings *f = d->findings;
  double wide = 0.0;
  char text[128];
  for (int kind = 0; kind < MT_META_N_KINDS; kind++) {
    snprintf(text, sizeof text, "%s (%lld)", kind_meaning[kind],
             (long long)mt_meta_kind_count(f->n_meta, d->meta, kind));
    wide += print_entry(d, text, kind_shape[kind], 1.2 * d->unit * kind_scale[kind],
                        "#404040", x + wide, font, out);
  }
  int64_t noise = mt_findings_noise(f);
  snprintf(text, sizeof text, "noise (%lld topic%s)", (long long)noise,
           noise == 1 ? "" : "s");
  wide += print_entry(d, text, kind_shape[0], 0.8 * d->unit, "#B8B8B8", x + wide, font,
                      out);
  return wide - 1.8 * font; /* no gap after the last */
}

static void print_legend(const mt_drawing *d, FILE *out)
{
  double room = d->width - 24.0 * d->unit, font = 13.0 * d->unit;
  double wide = print_entries(d, 0.0, font, NULL);
  if (wide > room) font *= room / wide, wide = room;
  print_entries(d, 0.5 * (d->width - wide), font, out);
  int64_t hidden = d->findings->n_meta - count_choice(d, 0) - count_choice(d, 1);
  char text[200];
  snprintf(text, sizeof text,
           "Near points are alike; how far apart far ones are means less%s.",
           d->narrowed ? ", and wide empty bands are drawn narrower" : "");
  if (hidden > 0)
    snprintf(text, sizeof text,
             "%lld of the smaller meta-topics have no label here for lack of room: see "
             "meta_topics.csv.",
             (long long)hidden);
  print_text(d, text, 0.5 * d->width, d->frame.y + d->frame.h + 47.0 * d->unit,
             "center", font_that_fits(text, 11.0 * d->unit, room), "#707070", out);
}

enum { FIRST_LABEL = 1001 }; /* gnuplot's tag of the first meta-topic's label */

static void print_label(const mt_drawing *d, int64_t i, FILE *out)
{
  const mt_label_place *place = &d->places[i];
  const mt_box *box = &place->box;
  int32_t colour = for_lines(d->colours[d->order[i]]);
  if (place->leader) {
    fputs("set arrow from ", out);
    print_place(d, place->anchor.x, place->anchor.y, out);
    fputs(" to ", out);
    print_place(d, place->leader_end.x, place->leader_end.y, out);
    fprintf(out, " nohead lw %.2f lc rgb '#50%06X' back\n", 0.8 * d->unit,
            (unsigned)colour);
  }
  fputs("set object rectangle from ", out);
  print_place(d, box->x, box->y + box->h, out);
  fputs(" to ", out);
  print_place(d, box->x + box->w, box->y, out);
  fprintf(out, " front fc rgb '#20FFFFFF' fs solid border lc rgb '#%06X' lw %.2f\n",
          (unsigned)colour, 1.2 * d->unit);
  fprintf(out, "set label %lld ", (long long)(FIRST_LABEL + i));
  mt_gnuplot_quote(d->texts[place->choice][i], out);
  fputs(" at ", out);
  print_place(d, box->x + 0.5 * box->w, box->y + 0.5 * box->h, out);
  fprintf(out, " center noenhanced font ',%.1f' tc rgb '#202020' front\n", d->font);
}

static void print_frame(const mt_drawing *d, FILE *out)
{
  const mt_box *f = &d->frame;
  fprintf(out,
          "set lmargin at screen %.6f\nset rmargin at screen %.6f\n"
          "set tmargin at screen %.6f\nset bmargin at screen %.6f\n",
          f->x / d->width, (f->x + f->w) / d->width, 1.0 - f->y / d->height,
          1.0 - (f->y + f->h) / d->height);
  fprintf(out, "set xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n", d->low[0],
          d->low[0] + f->w / d->scale[0], d->low[1], d->low[1] + f->h / d->scale[1]);
  fputs("unset key\nunset tics\nset border 15 lc rgb '#C0C0C0' lw 1\n", out);
}

/* The command that plots the points: noise below, members above, each with an outline. */
static void print_plot(const mt_drawing *d, FILE *out)
{
  const mt_findings *f = d->findings;
  int64_t noise = mt_findings_noise(f);
  int block = noise > 0 ? 1 : 0;
  double size = d->point_size / 4.5; /* of gnuplot's symbols, 4.5 pixels */
  fputs("plot NaN notitle", out);
  if (noise > 0)
    fprintf(out,
            ", \\\n  'map.dat' index 0 using 1:2:($3*%.3f):4:5 with points ps variable "
            "pt variable lc rgb variable notitle",
            size);
  if (noise < f->n_topics)
    fprintf(
        out,
        ", \\\n  'map.dat' index %d using 1:2:($3*%.3f):4:5 with points ps variable "
        "pt variable lc rgb variable notitle",
        block, size);
  if (noise < f->n_topics &&
      d->point_size > 2.5 * d->unit) /* small ones would be all edge */
    fprintf(out,
            ", \\\n  '' index %d using 1:2:($3*%.3f):($4-1) with points ps variable "
            "pt variable lc rgb '#A0000000' lw 0.5 notitle",
            block, size);
  fputs("\n", out);
}

static void print_svg(const mt_drawing *d, FILE *out)
{
  fprintf(
      out,
      "\nset terminal svg size %.0f,%.0f font 'sans-serif,12' background rgb 'white' "
      "name 'metatopics'\nset output part.'map.svg'\n",
      d->width, d->height);
  print_plot(d, out);
  fputs("unset output\n", out);
}

/* Texts of which this machine's fonts lack letters: their PNG shows boxes instead. */
static mt_status print_png_texts(const mt_drawing *d, const mt_glyphs *glyphs,
                                 FILE *out)
{
  mt_status status = MT_OK;
  char *text = NULL;
  int64_t lacking = 0;
  for (int64_t i = 0; i < d->n_labels; i++) {
    if (d->places[i].choice < 0) continue;
    bool changed;
    MT_TRY(
        mt_glyphs_replace(glyphs, d->texts[d->places[i].choice][i], &text, &changed));
    if (changed) {
      fprintf(out, "set label %lld ", (long long)(FIRST_LABEL + i));
      mt_gnuplot_quote(text, out);
      putc('\n', out);
    }
    lacking += changed;
    free(text);
    text = NULL;
  }
  if (lacking > 0)
    mt_warn("map.png: no font here has all letters of %lld label%s; it shows boxes in "
            "their "
            "place (install one, e.g. fonts-noto-cjk, and run again); map.svg has them",
            (long long)lacking, lacking == 1 ? "" : "s");
done:
  return status;
}

static mt_status print_png(const mt_drawing *d, const mt_glyphs *glyphs, FILE *out)
{
  fprintf(out,
          "\nif (strstrt(GPVAL_TERMINALS, 'pngcairo') == 0) exit message 'this gnuplot "
          "has no "
          "pngcairo terminal'\n"
          "set terminal pngcairo size %.0f,%.0f font 'sans-serif,12' fontscale 0.75 "
          "pointscale 1.3 background rgb 'white'\nset output part.'map.png'\n",
          d->width, d->height);
  mt_status status = print_png_texts(d, glyphs, out);
  print_plot(d, out);
  fputs("unset output\n", out);
  return status;
}

static mt_status print_script(const mt_drawing *d, const mt_map_options *options,
                              const mt_glyphs *glyphs, FILE *out)
{
  fputs("# The map of meta-topics. Draw it again: gnuplot map.gp\n"
        "# (sizes and places of labels belong to the size of the page)\n"
        "if (!exists('part')) part = '' # before the names of the pictures\n"
        "set encoding utf8\n",
        out);
  print_frame(d, out);
  print_title(d, out);
  print_legend(d, out);
  if (d->findings->n_topics == 0)
    print_text(d, "no topics", 0.5 * d->width, 0.5 * d->height, "center", 18 * d->unit,
               "#707070", out);
  for (int64_t i = 0; i < d->n_labels; i++)
    if (d->places[i].choice >= 0) print_label(d, i, out);
  if (options->svg) print_svg(d, out);
  return options->png ? print_png(d, glyphs, out) : MT_OK;
}

/* ---- files -------------------------------------------------------------------------- */

static mt_status save_data(const mt_drawing *d, const char *folder)
{
  char *bytes = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&bytes, &size);
  if (out == NULL) return mt_fail(MT_ERR_MEMORY, "map.dat: no memory to write it");
  print_data(d, out);
  return mt_printed_save(folder, "map.dat", out, &bytes, &size);
}

static mt_status save_script(const mt_drawing *d, const mt_map_options *options,
                             const mt_glyphs *glyphs, const char *folder)
{
  char *bytes = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&bytes, &size);
  if (out == NULL) return mt_fail(MT_ERR_MEMORY, "map.gp: no memory to write it");
  mt_status status = print_script(d, options, glyphs, out);
  if (status == MT_OK) return mt_printed_save(folder, "map.gp", out, &bytes, &size);
  fclose(out);
  free(bytes);
  return status;
}

mt_status mt_map_write(const mt_findings *findings, const mt_meta_topic *meta,
                       const mt_map_options *options, const char *folder)
{
  mt_status status = MT_OK;
  mt_drawing drawing = {.findings = findings, .meta = meta};
  mt_glyphs glyphs = {0};
  MT_TRY(drawing_make(&drawing, options));
  if (options->png) MT_TRY(mt_glyphs_load(&glyphs));
  MT_TRY(save_data(&drawing, folder));
  MT_TRY(save_script(&drawing, options, &glyphs, folder));
done:
  mt_glyphs_destroy(&glyphs);
  drawing_destroy(&drawing);
  return status;
}

mt_status mt_map_draw(const mt_map_options *options, const char *folder,
                      bool *drawn_out)
{
  return mt_pictures_draw(folder, "map", options->svg, options->png, drawn_out);
}
