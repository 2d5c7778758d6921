/* codegen/winograd.c - 3x3 convolutions by fewer multiplications: which form, and what happens to
 * the filters (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016).
 *
 * A tile of m x m outputs is A' [(G g G') .* (B' d B)] A for a filter g and inputs d of n x n, with
 * n = m + 2: n n multiplications a channel where a direct sum has 9 m m. A, B and G evaluate and
 * interpolate polynomials at the points 0, 1, -1 and infinity for m = 2 and 0, +-a, +-b and infinity
 * for m = 4. There a b = 1 with a = 1 / sqrt 2: the points 1 and 2 of the paper leave five times
 * the error (docs/kernels.md). */
#include "codegen/winograd.h"

#include <math.h>

/* Bytes a cycle of filters: from the second-level cache where they are few, else from the third; more than
 * 4 MB come from memory, as one run of a net reads all its weights before it reads these again. */
static double filter_rate(double bytes) { return bytes <= 1 << 20 ? 40 : bytes <= 4 << 20 ? 18 : 9; }

/* What a block of tiles costs to bring in, in cycles: filters once a block; a block's inputs once for 32
 * columns where they do not stay in the second-level cache either. */
static double memory_cycles(int64_t tiles, int64_t blocks, int64_t places, int64_t in, int64_t out) {
    double filters = (double)(places * in * out) * 4, inputs = (double)(places * in) * 4;
    double all = filters * (double)blocks / filter_rate(filters);
    if ((double)((tiles + blocks - 1) / blocks) * inputs > (double)KN_WINOGRAD_BLOCK_BYTES)
        all += (double)((out + 31) / 32) * (double)tiles * inputs / 18;
    return all;
}

enum { FEW_TILES = 28, LEAST_TILES = 14 };

/* Tiles whose inputs stay in the second-level cache. */
static int64_t usual_block(int m, int64_t in) {
    int64_t places = (m + 2) * (m + 2), row_bytes = (in + 15) / 16 * 64, usual = FEW_TILES;
    while (usual * places * row_bytes > KN_WINOGRAD_BLOCK_BYTES && usual > LEAST_TILES)
        usual--;
    return usual;
}

/* Blocks grow beyond that only so far: all their inputs are in memory at once. */
static int64_t large_block(int m, int64_t in) {
    int64_t large = 4 * usual_block(m, in);
    return large < 64 ? 64 : large;
}

/* Large blocks where filters come from memory; else as for a constant number of tiles: fewer blocks
 * where reading the filters for every usual one would cost more, as many tiles as the second-level
 * cache holds or more. (512 -> 512 at 7x7, a batch of 8, one Zen 3 core: 20 tiles 23 ms, 64 tiles
 * 15.6; 192 -> 64 at 64x64: 20 tiles 5.4, 128 tiles 7.4.) */
int64_t kn_winograd_block_room(int m, int64_t in, int64_t out) {
    enum { MANY_TILES = 4096 };
    int64_t places = (m + 2) * (m + 2), large = large_block(m, in);
    if (places * in * out * 4 > 4 << 20)
        return large;
    int64_t blocks = kn_winograd_blocks(m, MANY_TILES, in, out);
    int64_t room = (MANY_TILES + blocks - 1) / blocks;
    return room < large ? room : large;
}

/* A net halves the sides where it doubles the channels, and has 56 pixels at 64 channels. */
int64_t kn_winograd_usual_side(int64_t in, int64_t out) {
    int64_t side = 56 * 64 / (in > out ? in : out);
    return side > 56 ? 56 : side < 7 ? 7 : side;
}

int64_t kn_winograd_blocks(int m, int64_t tiles, int64_t in, int64_t out) {
    int64_t places = (m + 2) * (m + 2), row_bytes = (in + 15) / 16 * 64;
    int64_t blocks = (tiles + FEW_TILES / 2) / FEW_TILES;
    blocks = blocks < 1 ? 1 : blocks;
    while ((tiles + blocks - 1) / blocks * places * row_bytes > KN_WINOGRAD_BLOCK_BYTES &&
           (tiles + blocks - 1) / blocks > LEAST_TILES)
        blocks++;
    /* Fewer only where that is worth something: threads want items. */
    double products = (double)tiles * (double)places * (double)in * (double)out / 32;
    double least = memory_cycles(tiles, blocks, places, in, out) - 0.05 * products;
    int64_t choice = blocks;
    int64_t fewest = (tiles + large_block(m, in) - 1) / large_block(m, in);
    for (int64_t b = fewest; b < blocks; b++)
        if (memory_cycles(tiles, b, places, in, out) < least) {
            least = memory_cycles(tiles, b, places, in, out);
            choice = b;
        }
    return choice;
}

/* Cycles of AVX-512, fitted to measurements (docs/kernels.md): products at 95 % of the peak, a vector
 * of a tile's inputs and of its outputs, memory. The choice is one for all levels, which share the
 * weights; narrower ones gain more. */
int kn_choose_winograd(int64_t images, int64_t out_h, int64_t out_w, int64_t in, int64_t out,
                       double direct) {
    if (in < 16 || out < 16 || out_h < 4 || out_w < 4 || in > 4096 || out > 4096 || images < 1 ||
        images > 4096 || out_h > 1 << 15 || out_w > 1 << 15)
        return 0;
    double products = (double)in * (double)out / 32;
    double best = (double)images * (double)out_h * (double)out_w * 9 * products * 1.05 * 0.9 * direct +
                  products * 9 * 32 * 4 / filter_rate(products * 9 * 32 * 4);
    int choice = 0;
    for (int m = 2; m <= 4; m += 2) {
        int64_t tiles = images * ((out_h + m - 1) / m) * ((out_w + m - 1) / m);
        int64_t places = (m + 2) * (m + 2);
        double vectors = (double)(in + 15) / 16 * (m == 4 ? 120 : 45) +
                         (double)(out + 15) / 16 * (m == 4 ? 100 : 40);
        double cost = (double)tiles * ((double)places * products * 1.05 + vectors) +
                      memory_cycles(tiles, kn_winograd_blocks(m, tiles, in, out), places, in, out);
        if (cost < best) {
            best = cost;
            choice = m;
        }
    }
    return choice;
}

void kn_winograd_filter(int m, const double filter[9], double *out) {
    static const double small[4][3] = {{-1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
    double g[6][3], half[6][3];
    int n = m + 2;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < 3; j++)
            g[i][j] = m == 2 ? small[i][j] : 0;
    if (m == 4) {
        const double a2 = 0.5, b2 = 2, a = sqrt(a2), b = sqrt(b2);
        const double points[4] = {a, -a, b, -b};
        g[0][0] = 1 / (a2 * b2);
        for (int i = 0; i < 4; i++) {
            double p = points[i], p2 = i < 2 ? a2 : b2, scale = 1 / (2 * p2 * (p2 - (i < 2 ? b2 : a2)));
            g[i + 1][0] = scale;
            g[i + 1][1] = p * scale;
            g[i + 1][2] = p2 * scale;
        }
        g[5][2] = 1;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < 3; j++)
            half[i][j] = g[i][0] * filter[j] + g[i][1] * filter[3 + j] + g[i][2] * filter[6 + j];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            out[i * n + j] = half[i][0] * g[j][0] + half[i][1] * g[j][1] + half[i][2] * g[j][2];
}
