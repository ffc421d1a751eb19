/* The words of the made newswire. */
#ifndef MT_NEWSWIRE_WORDS_H
#define MT_NEWSWIRE_WORDS_H

/* "name: word word ...", about 40 words each, commonest first; ends with NULL. */
extern const char *const mt_newswire_subjects[];

/* Words between blanks: of the grammar (commonest first), and of no subject. */
extern const char mt_newswire_function[];
extern const char mt_newswire_general[];

/* Boilerplate; ends with NULL. */
extern const char *const mt_newswire_phrases[];

#endif
