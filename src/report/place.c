#include "report/place.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

enum { ANGLES = 32, CELL = 3, PASSES = 4 };
static const double GAP = 3.0;          /* pixels between two boxes, and to the frame */
static const double LEADER_FROM = 10.0; /* a box this far from its anchor gets a line */
static const double CROSSING = 60.0;    /* cost of a line over a box or another line */
static const double ON_ANCHOR = 40.0;   /* cost of covering what another label names */
static const double FARTHEST = 0.45;    /* of the frame's diagonal */

typedef struct placer {
  mt_box frame;
  int64_t columns, rows; /* of the raster of points */
  int32_t *below;        /* (rows + 1, columns + 1) points in cells above and left */
  double point_cost, radius;
  int64_t n;
  mt_label_place *labels;
} placer;

bool mt_box_overlap(const mt_box *a, const mt_box *b)
{
  return a->x < b->x + b->w && b->x < a->x + a->w && a->y < b->y + b->h &&
         b->y < a->y + a->h;
}

static bool overlap_with_gap(const mt_box *a, const mt_box *b)
{
  mt_box wide = {a->x - GAP, a->y - GAP, a->w + 2 * GAP, a->h + 2 * GAP};
  return mt_box_overlap(&wide, b);
}

static bool inside_frame(const placer *p, const mt_box *box)
{
  const mt_box *f = &p->frame;
  return box->x >= f->x + GAP && box->y >= f->y + GAP &&
         box->x + box->w <= f->x + f->w - GAP && box->y + box->h <= f->y + f->h - GAP;
}

static bool holds(const mt_box *box, mt_point at)
{
  return at.x > box->x && at.x < box->x + box->w && at.y > box->y &&
         at.y < box->y + box->h;
}

/* ---- points as a raster of sums --------------------------------------------------- */

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
  return value < low ? low : value > high ? high : value;
}

static mt_status raster_points(placer *p, int64_t n, const mt_point *points)
{
  mt_status status = MT_OK;
  p->columns = (int64_t)(p->frame.w / CELL) + 1;
  p->rows = (int64_t)(p->frame.h / CELL) + 1;
  int64_t wide = p->columns + 1;
  MT_NEW(p->below, (p->rows + 1) * wide);
  for (int64_t i = 0; i < n; i++) {
    int64_t column = (int64_t)floor((points[i].x - p->frame.x) / CELL);
    int64_t row = (int64_t)floor((points[i].y - p->frame.y) / CELL);
    column = clamp(column, 0, p->columns - 1);
    row = clamp(row, 0, p->rows - 1);
    p->below[(row + 1) * wide + column + 1]++;
  }
  for (int64_t r = 1; r <= p->rows; r++)
    for (int64_t c = 1; c <= p->columns; c++)
      p->below[r * wide + c] += p->below[(r - 1) * wide + c] +
                                p->below[r * wide + c - 1] -
                                p->below[(r - 1) * wide + c - 1];
  p->point_cost = 6000.0 / ((double)n + 300.0);
done:
  return status;
}

/* Points that a box touches, to a cell's accuracy. */
static double points_under(const placer *p, const mt_box *label)
{
  double r = p->radius;
  mt_box grown = {label->x - r, label->y - r, label->w + 2 * r, label->h + 2 * r};
  const mt_box *box = &grown;
  int64_t wide = p->columns + 1;
  int64_t left = (int64_t)floor((box->x - p->frame.x) / CELL);
  int64_t right = (int64_t)floor((box->x + box->w - p->frame.x) / CELL) + 1;
  int64_t top = (int64_t)floor((box->y - p->frame.y) / CELL);
  int64_t bottom = (int64_t)floor((box->y + box->h - p->frame.y) / CELL) + 1;
  left = clamp(left, 0, p->columns);
  right = clamp(right, 0, p->columns);
  top = clamp(top, 0, p->rows);
  bottom = clamp(bottom, 0, p->rows);
  return p->below[bottom * wide + right] - p->below[top * wide + right] -
         p->below[bottom * wide + left] + p->below[top * wide + left];
}

/* ---- lines ------------------------------------------------------------------------- */

static double side(mt_point a, mt_point b, mt_point c)
{
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

static bool lines_cross(mt_point a, mt_point b, mt_point c, mt_point d)
{
  return side(a, b, c) * side(a, b, d) < 0.0 && side(c, d, a) * side(c, d, b) < 0.0;
}

static bool line_meets_box(mt_point a, mt_point b, const mt_box *box)
{
  mt_point p = {box->x, box->y}, q = {box->x + box->w, box->y + box->h};
  mt_point r = {q.x, p.y}, s = {p.x, q.y};
  return holds(box, a) || holds(box, b) || lines_cross(a, b, p, q) ||
         lines_cross(a, b, r, s);
}

/* The point of a box that is nearest to the anchor, and how far that is. */
static double box_distance(const mt_box *box, mt_point anchor, mt_point *nearest_out)
{
  mt_point at = {fmin(fmax(anchor.x, box->x), box->x + box->w),
                 fmin(fmax(anchor.y, box->y), box->y + box->h)};
  *nearest_out = at;
  return hypot(at.x - anchor.x, at.y - anchor.y);
}

/* ---- costs ------------------------------------------------------------------------- */

/* What a box costs label i among the labels that are placed; infinite if it may not be
 * there. Stops early once it costs more than `enough`. */
static double box_cost(const placer *p, int64_t i, const mt_box *box, double enough)
{
  mt_point anchor = p->labels[i].anchor, end;
  if (!inside_frame(p, box)) return INFINITY;
  double distance = box_distance(box, anchor, &end);
  double cost = distance + p->point_cost * points_under(p, box);
  if (cost >= enough) return INFINITY;
  bool leader = distance > LEADER_FROM;
  for (int64_t j = 0; j < p->n && cost < enough; j++) {
    const mt_label_place *other = &p->labels[j];
    if (j == i) continue;
    if (holds(box, other->anchor)) cost += ON_ANCHOR;
    if (other->choice < 0) continue;
    if (overlap_with_gap(box, &other->box)) return INFINITY;
    if (leader && line_meets_box(anchor, end, &other->box)) cost += CROSSING;
    if (!other->leader) continue;
    if (line_meets_box(other->anchor, other->leader_end, box)) cost += CROSSING;
    if (leader && lines_cross(anchor, end, other->anchor, other->leader_end))
      cost += CROSSING;
  }
  return cost;
}

/* The cheapest box of a width for label i; its cost, infinite if there is no room. */
static double cheapest_box(const placer *p, int64_t i, double width, mt_box *box_out)
{
  const mt_label_place *label = &p->labels[i];
  double best = INFINITY, farthest = FARTHEST * hypot(p->frame.w, p->frame.h);
  double step = 0.35 * label->height;
  for (double r = 5.0; r < farthest && 0.5 * r < best; r += step) {
    for (int k = 0; k < ANGLES; k++) {
      double angle = 2.0 * M_PI * k / ANGLES;
      double x = label->anchor.x + cos(angle) * (0.5 * width + r);
      double y = label->anchor.y + sin(angle) * (0.5 * label->height + r);
      mt_box box = {x - 0.5 * width, y - 0.5 * label->height, width, label->height};
      double cost = box_cost(p, i, &box, best);
      if (cost < best) best = cost, *box_out = box;
    }
    step *= 1.05;
  }
  return best;
}

static void settle(placer *p, int64_t i)
{
  mt_label_place *label = &p->labels[i];
  mt_box box = {0};
  int choice = -1;
  label->choice = -1; /* it does not stand in its own way */
  if (cheapest_box(p, i, label->width[0], &box) < INFINITY)
    choice = 0;
  else if (label->width[1] < label->width[0] &&
           cheapest_box(p, i, label->width[1], &box) < INFINITY)
    choice = 1;
  label->choice = choice;
  label->leader = false;
  if (choice < 0) return;
  label->box = box;
  label->leader = box_distance(&box, label->anchor, &label->leader_end) > LEADER_FROM;
}

mt_status mt_labels_place(mt_box frame, int64_t n_points, const mt_point *points,
                          double radius, int64_t n, mt_label_place *labels)
{
  mt_status status = MT_OK;
  placer p = {.frame = frame, .radius = radius, .n = n, .labels = labels};
  MT_TRY(raster_points(&p, n_points, points));
  for (int64_t i = 0; i < n; i++) labels[i].choice = -1, labels[i].leader = false;
  for (int pass = 0; pass < PASSES; pass++)
    for (int64_t i = 0; i < n; i++) settle(&p, i);
done:
  free(p.below);
  return status;
}
