/* runtime/ops/gemm_body.h - one blocked matrix product for the element type GEMM_T.
 *
 * Included once for each type by gemm.c, so it has no guard. Blocks of K (256) are packed so that
 * the inner loop reads both operands in sequence; a block's sum is added to c at its end, which
 * also keeps the rounding error near that of a pairwise sum. */

TS_TARGET_CLONES
static void GEMM_NAME(block)(int64_t m, int64_t n, int64_t k, const GEMM_T *a_packed,
                             const GEMM_T *b_packed, GEMM_T *c, int64_t ldc) {
    for (int64_t j = 0; j < n; j += GEMM_NR) {
        for (int64_t i = 0; i < m; i += GEMM_MR) {
            const GEMM_T *a = a_packed + i * k;
            const GEMM_V *b = (const GEMM_V *)(const void *)(b_packed + j * k);
            GEMM_V s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0};
            for (int64_t p = 0; p < k; p++, a += GEMM_MR) {
                GEMM_V row = b[p];
                s0 += a[0] * row;
                s1 += a[1] * row;
                s2 += a[2] * row;
                s3 += a[3] * row;
                s4 += a[4] * row;
                s5 += a[5] * row;
            }
            GEMM_V sums[GEMM_MR] = {s0, s1, s2, s3, s4, s5};
            const GEMM_T *from = (const GEMM_T *)(const void *)sums;
            int64_t rows = m - i < GEMM_MR ? m - i : GEMM_MR;
            int64_t columns = n - j < GEMM_NR ? n - j : GEMM_NR;
            for (int64_t r = 0; r < rows; r++)
                for (int64_t q = 0; q < columns; q++)
                    c[(i + r) * ldc + j + q] += from[r * GEMM_NR + q];
        }
    }
}

/* [rows][k] with any strides into panels of `width` rows: panel, k, row. */
static void GEMM_NAME(pack)(int64_t rows, int64_t k, const GEMM_T *from, int64_t row_stride,
                            int64_t k_stride, int64_t width, GEMM_T *to) {
    for (int64_t i = 0; i < rows; i += width) {
        int64_t left = rows - i < width ? rows - i : width;
        const GEMM_T *panel = from + i * row_stride;
        for (int64_t p = 0; p < k; p++, to += width) {
            const GEMM_T *at = panel + p * k_stride;
            for (int64_t r = 0; r < left; r++)
                to[r] = at[r * row_stride];
            for (int64_t r = left; r < width; r++)
                to[r] = 0;
        }
    }
}

/* One row: dot products or sums of rows, without packing. */
TS_TARGET_CLONES
static void GEMM_NAME(row)(int64_t n, int64_t k, const GEMM_T *a, int64_t a_stride,
                           const GEMM_T *b, int64_t b_row, int64_t b_column, GEMM_T *c) {
    if (b_column == 1) {
        int64_t p = 0;
        for (; p + 4 <= k; p += 4) { /* four rows a time: c is read and written a quarter as often */
            GEMM_T x0 = a[p * a_stride], x1 = a[(p + 1) * a_stride];
            GEMM_T x2 = a[(p + 2) * a_stride], x3 = a[(p + 3) * a_stride];
            const GEMM_T *row = b + p * b_row;
            int64_t j = 0;
            for (; j + GEMM_NR <= n; j += GEMM_NR) {
                GEMM_V *to = (GEMM_V *)(void *)(c + j);
                GEMM_V sum = x0 * *(const GEMM_V *)(const void *)(row + j);
                sum += x1 * *(const GEMM_V *)(const void *)(row + b_row + j);
                sum += x2 * *(const GEMM_V *)(const void *)(row + 2 * b_row + j);
                sum += x3 * *(const GEMM_V *)(const void *)(row + 3 * b_row + j);
                *to += sum;
            }
            for (; j < n; j++)
                c[j] += x0 * row[j] + x1 * row[b_row + j] + x2 * row[2 * b_row + j] +
                        x3 * row[3 * b_row + j];
        }
        for (; p < k; p++) {
            GEMM_T x = a[p * a_stride];
            const GEMM_T *row = b + p * b_row;
            for (int64_t j = 0; j < n; j++)
                c[j] += x * row[j];
        }
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        const GEMM_T *column = b + j * b_column;
        GEMM_T sum = 0;
        int64_t p = 0;
        if (b_row == 1 && a_stride == 1) {
            GEMM_V sums = {0};
            for (; p + GEMM_NR <= k; p += GEMM_NR)
                sums += *(const GEMM_V *)(const void *)(a + p) *
                        *(const GEMM_V *)(const void *)(column + p);
            const GEMM_T *parts = (const GEMM_T *)(const void *)&sums;
            for (int64_t q = 0; q < GEMM_NR; q++)
                sum += parts[q];
        }
        for (; p < k; p++)
            sum += a[p * a_stride] * column[p * b_row];
        c[j] += sum;
    }
}

static ts_status GEMM_NAME(run)(int64_t m, int64_t n, int64_t k, rt_matrix a, rt_matrix b,
                                GEMM_T *c, int64_t ldc) {
    const GEMM_T *a_data = a.data, *b_data = b.data;
    if (m == 1 || (m < 4 && b.column_stride != 1)) {
        for (int64_t i = 0; i < m; i++)
            GEMM_NAME(row)(n, k, a_data + i * a.row_stride, a.column_stride, b_data, b.row_stride,
                           b.column_stride, c + i * ldc);
        return NULL;
    }
    if (n == 1 && ldc == 1) { /* c = a b with one column: the row of the transposed product */
        GEMM_NAME(row)(m, k, b_data, b.row_stride, a_data, a.column_stride, a.row_stride, c);
        return NULL;
    }
    enum { KC = 256, MC = 96, NC = 1024 };
    int64_t kc = k < KC ? k : KC, nc = n < NC ? n : NC, mc = m < MC ? m : MC;
    int64_t n_room = (nc + GEMM_NR - 1) / GEMM_NR * GEMM_NR;
    int64_t m_room = (mc + GEMM_MR - 1) / GEMM_MR * GEMM_MR;
    GEMM_T *room = malloc((size_t)((n_room + m_room) * kc + 1) * sizeof *room);
    if (!room)
        return ts_no_memory();
    GEMM_T *b_packed = room, *a_packed = room + n_room * kc;
    for (int64_t j = 0; j < n; j += NC)
        for (int64_t p = 0; p < k; p += KC) {
            int64_t kn = k - p < KC ? k - p : KC, nn = n - j < NC ? n - j : NC;
            GEMM_NAME(pack)(nn, kn, b_data + p * b.row_stride + j * b.column_stride,
                            b.column_stride, b.row_stride, GEMM_NR, b_packed);
            for (int64_t i = 0; i < m; i += MC) {
                int64_t mn = m - i < MC ? m - i : MC;
                GEMM_NAME(pack)(mn, kn, a_data + i * a.row_stride + p * a.column_stride,
                                a.row_stride, a.column_stride, GEMM_MR, a_packed);
                GEMM_NAME(block)(mn, nn, kn, a_packed, b_packed, c + i * ldc + j, ldc);
            }
        }
    free(room);
    return NULL;
}
