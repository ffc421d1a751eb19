/* "Did you mean ...?" for names that do not exist. */
#ifndef MT_DECK_NEAREST_H
#define MT_DECK_NEAREST_H

/**
 * The word that needs the fewest insertions, deletions, replacements and swaps of
 * neighbours to become `name`; letter case does not count. The first of equals.
 * words    NULL after the last
 * returns  one of words, or NULL if none is near (more than a third of the letters differ)
 */
const char *mt_nearest(const char *name, const char *const *words);

#endif
