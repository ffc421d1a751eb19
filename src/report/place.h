/* Where labels go on a map: close to what they name, over as few points as can be, and
 * never over one another. */
#ifndef MT_REPORT_PLACE_H
#define MT_REPORT_PLACE_H
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Pixels; y grows downwards. */
typedef struct mt_point {
  double x, y;
} mt_point;

typedef struct mt_box {
  double x, y, w, h; /* the corner with the smallest x and y; w, h >= 0 */
} mt_box;

typedef struct mt_label_place {
  mt_point anchor; /* in: what the label names */
  double
      width[2];  /* in: of the whole text and of a shorter one; equal: no shorter one */
  double height; /* in */
  int choice;    /* out: 0 the whole text, 1 the shorter, -1: there is no room */
  mt_box box;    /* out: inside the frame; covers no other label's box */
  bool leader;   /* out: it is so far off that a line should lead to it */
  mt_point leader_end; /* out: where that line meets the box */
} mt_label_place;

/**
 * Places n labels, those that come first first; then lets each move where it costs less. A
 * cost is the pixels between anchor and box, plus so much for each point or anchor that the
 * box covers and each box or line that its own line crosses. Deterministic.
 * points   (n_points) that should stay visible, circles of `radius` pixels
 * Errors   MT_ERR_MEMORY
 */
mt_status mt_labels_place(mt_box frame, int64_t n_points, const mt_point *points,
                          double radius, int64_t n, mt_label_place *labels);

bool mt_box_overlap(const mt_box *a, const mt_box *b);

#endif
