/* codegen/winograd.h - 3x3 convolutions by fewer multiplications (winograd.c). */
#ifndef CODEGEN_WINOGRAD_H
#define CODEGEN_WINOGRAD_H

#include <stdint.h>

/* Outputs of a tile along a side, 2 or 4, for a 3x3 convolution with stride 1; 0: not worth it.
 * direct: what a direct sum costs against one in float32. */
int kn_choose_winograd(int64_t out_h, int64_t out_w, int64_t in, int64_t out, double direct);
/* filter[3][3] -> out[m + 2][m + 2] */
void kn_winograd_filter(int m, const double filter[9], double *out);

#endif
