#include "knn/nn_descent.h"

static int64_t least(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

mt_nn_plan mt_nn_plan_make(int64_t n, int64_t k)
{
  mt_nn_plan plan = {.n = n, .width = least(n - 1, most(k + k / 2, k + 4))};
  plan.links = least(plan.width, 32);
  plan.trees = 6;
  while (n >> (plan.levels + 1) >= 2 * plan.width + 2) plan.levels++;
  plan.rounds = 20;
  plan.enough = n * plan.width / 1000;
  return plan;
}
