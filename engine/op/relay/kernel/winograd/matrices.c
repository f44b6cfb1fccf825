/* matrices.c: the matrices of Winograd's convolution (Lavin and Gray,
 * arXiv:1509.09308). Called by the kernels of this folder.
 *
 * They are those of Cook and Toom for the interpolation points x_i, of which
 * the last is infinity: A[i][j] = x_i^j, G[i][j] = x_i^j / f_i, B[k][i]: the
 * coefficient of x^k in f_i times the product of (x - x_j) / f_i over the j
 * other than i, where f_i is the product of x_i - x_j over those j, without its
 * sign for i = 0.
 *
 * Semantics: TVM's TOPI: the points that it takes, the matrices in the dtype of
 * the data. */

#include "op/relay/kernel/winograd/matrices.h"

/* The points of TVM but for the last, by their number, 3 to 13 (Barabasz et
 * al., arXiv:1803.10986). */
static const double points[][PLN_WINOGRAD_ALPHA - 1] = {
    {0, -1, 1},
    {0, -1, 1, .5},
    {0, -1, 1, .5, -2},
    {0, -1, 1, .5, -2, -.5},
    {0, -1, 1, .5, -.5, 2, -2},
    {0, -1, 1, .5, -.5, 2, -2, -.25},
    {0, -1, 1, .5, -.5, 2, -2, -.25, 4},
    {0, -1, 1, .5, -.5, 2, -2, -.25, .75, -4. / 3},
    {0, -1, 1, .5, -.5, 2, -2, -.25, 4, .75, -4. / 3},
    {0, -1, 1, .5, -.5, 2, -2, -.25, 4, .75, -4. / 3, .25},
    {0, -1, 1, .5, -.5, 2, -2, -.25, 4, .25, -.75, 4. / 3, -4},
};

/* Coefficients of the product of (x - x_j) over the n points without point
 * `but`; returns their number. */
static uint32_t multiply_out(const double *x, uint32_t n, uint32_t but,
                             double *coefficients) {
  uint32_t count = 1;
  coefficients[0] = 1;
  for (uint32_t j = 0; j < n; j++) {
    if (j == but)
      continue;
    coefficients[count] = 0;
    for (uint32_t k = count++; k > 0; k--)
      coefficients[k] = coefficients[k - 1] - x[j] * coefficients[k];
    coefficients[0] *= -x[j];
  }
  return count;
}

static double power(double x, uint32_t n) {
  double product = 1;
  while (n--)
    product *= x;
  return product;
}

static double differences(const double *x, uint32_t n, uint32_t i) {
  double product = 1;
  for (uint32_t j = 0; j < n; j++)
    product *= j == i ? 1 : x[i] - x[j];
  return product;
}

static void fill_point(pln_winograd *w, const double *x, uint32_t i) {
  uint32_t n = w->alpha - 1;
  double coefficients[PLN_WINOGRAD_ALPHA], f = differences(x, n, i);
  double sign = i == 0 && f < 0 ? -1 : 1;
  uint32_t count = multiply_out(x, n, i, coefficients);
  for (uint32_t j = 0; j < w->tile; j++)
    w->a[i][j] = (float)power(x[i], j);
  for (uint32_t j = 0; j < w->window; j++)
    w->g[i][j] = (float)(power(x[i], j) * (1 / (sign * f)));
  for (uint32_t k = 0; k < count; k++)
    w->b[k][i] = (float)(sign * coefficients[k]);
}

bool pln_winograd_make(int64_t tile, int64_t window, pln_winograd *w) {
  if (tile < 2 || tile > PLN_WINOGRAD_TILE || window < 3 ||
      window > PLN_WINOGRAD_WINDOW)
    return false;
  *w = (pln_winograd){.tile = (uint32_t)tile, .window = (uint32_t)window};
  w->alpha = w->tile + w->window - 1;
  uint32_t last = w->alpha - 1;
  const double *x = points[last - 3];
  double coefficients[PLN_WINOGRAD_ALPHA];
  for (uint32_t i = 0; i < last; i++)
    fill_point(w, x, i);
  w->a[last][w->tile - 1] = w->g[last][w->window - 1] = 1;
  uint32_t count = multiply_out(x, last, PLN_NONE, coefficients);
  for (uint32_t k = 0; k < count; k++)
    w->b[k][last] = (float)coefficients[k];
  return true;
}

bool pln_winograd_identity(int64_t window, pln_winograd *w) {
  if (window < 1 || window > PLN_WINOGRAD_ALPHA)
    return false;
  *w = (pln_winograd){.tile = 1, .window = (uint32_t)window};
  w->alpha = w->window;
  for (uint32_t i = 0; i < w->alpha; i++)
    w->a[i][0] = w->b[i][i] = 1;
  return true;
}

int64_t pln_winograd_tile_size(const pln_kernel_call *call) {
  int64_t tile = pln_kernel_int(call, "tile_size", 0);
  return tile < 2 || tile > PLN_WINOGRAD_TILE ? 0 : tile;
}
