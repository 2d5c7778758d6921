/* codegen/winograd.h - 3x3 convolutions by fewer multiplications (winograd.c). */
#ifndef CODEGEN_WINOGRAD_H
#define CODEGEN_WINOGRAD_H

#include <stdint.h>

/* Transformed inputs of a block: they stay in the second-level cache. */
enum { KN_WINOGRAD_BLOCK_BYTES = 640 * 1024 };

/* Outputs of a tile along a side, 2 or 4, for a 3x3 convolution with stride 1; 0: not worth it.
 * direct: what a direct sum costs against one in float32. */
int kn_choose_winograd(int64_t images, int64_t out_h, int64_t out_w, int64_t in, int64_t out,
                       double direct);
/* How many blocks the tiles are worked in. */
int64_t kn_winograd_blocks(int m, int64_t tiles, int64_t in, int64_t out);
/* Most tiles of a block where their number is a parameter. */
int64_t kn_winograd_block_room(int m, int64_t in, int64_t out);
/* What an image's side counts as where it is a parameter. */
int64_t kn_winograd_usual_side(int64_t in, int64_t out);
/* filter[3][3] -> out[m + 2][m + 2] */
void kn_winograd_filter(int m, const double filter[9], double *out);

#endif
