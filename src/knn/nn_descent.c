#include "knn/nn_descent.h"

static int64_t least(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

mt_status mt_nn_plan_make(int64_t n, int64_t k, mt_nn_plan *plan_out)
{
  if (k < 1 || k >= n)
    return mt_fail(MT_ERR_ARG, "%lld neighbours of %lld rows", (long long)k,
                   (long long)n);
  if (n > MT_NN_MOST_ROWS)
    return mt_fail(MT_ERR_INPUT,
                   "nn_descent takes at most %lld rows, not %lld: use "
                   "knn.build_algo=\"brute_force\"",
                   (long long)MT_NN_MOST_ROWS, (long long)n);
  mt_nn_plan plan = {.n = n, .width = least(n - 1, most(k + k / 2, k + 4))};
  plan.links = least(plan.width, MT_NN_MOST_LINKS);
  plan.trees = 6;
  while (n >> (plan.levels + 1) >= 2 * plan.width + 2) plan.levels++;
  plan.rounds = 20;
  plan.enough = n * plan.width / 1000;
  *plan_out = plan;
  return MT_OK;
}
