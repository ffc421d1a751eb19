/* The annotated map: every topic as a point where UMAP put it, every meta-topic with a
 * colour and a label. It is a gnuplot script and its data, drawn by gnuplot. */
#ifndef MT_REPORT_MAP_H
#define MT_REPORT_MAP_H
#include "report/labels.h"

/**
 * Writes FOLDER/map.dat and FOLDER/map.gp; `gnuplot map.gp` in that folder draws map.svg
 * and map.png, those that options ask for. Not collective.
 * Noise is grey and small; the shape of a point tells the kind of its meta-topic. Labels do
 * not cover one another: if there is no room for all, they become smaller, then shorter;
 * then those of the smallest meta-topics are left out, which the map says.
 */
mt_status mt_map_write(const mt_findings *findings, const mt_meta_topic *meta,
                       const mt_map_options *options, const char *folder);

/* Draws what mt_map_write left there (mt_pictures_draw, report/draw.h). */
mt_status mt_map_draw(const mt_map_options *options, const char *folder,
                      bool *drawn_out);

#endif
