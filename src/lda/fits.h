/* The fits that a run wants: one for each seed of each period with enough documents. */
#ifndef MT_LDA_FITS_H
#define MT_LDA_FITS_H
#include "corpus/corpus.h"
#include "lda/plan.h"
#include "stage/stage.h"

typedef struct mt_fit {
  int64_t period; /* row of /periods */
  int64_t seed;
  char *path;             /* OUT/lda/PERIOD/seed-S.h5; owned */
  mt_fingerprint made_by; /* corpus, period, seed and the parameters that matter */
} mt_fit;

typedef struct mt_fits {
  mt_file *corpus; /* open */
  int64_t n_terms, n_periods;
  mt_period *periods;
  int64_t n;
  mt_fit *fits; /* (n) periods in order, then seeds as the deck gives them */
} mt_fits;

/* Opens OUT/corpus.h5 and lists the fits. Not collective. fits_out empty on entry. */
mt_status mt_fits_list(const mt_run *run, mt_fits *fits_out);
void mt_fits_close(mt_fits *fits); /* an empty one is fine */

/* Is the file of a fit there, made with this input and these parameters? */
bool mt_fit_is_there(const mt_fit *fit);

/* Has the file of a fit its checksum? False if there is no file; reads all of it. */
mt_status mt_fit_is_whole(const mt_fit *fit, bool *whole_out);

/* What all fits together are made of. */
mt_fingerprint mt_fits_fingerprint(const mt_fits *fits, const char *what);

/* A fit's size, for mt_lda_plan. */
mt_lda_size mt_fit_size(const mt_fits *fits, int64_t fit,
                        const mt_lda_options *options);

#endif
