/* docs/examples/digits.c - reads handwritten digits with the model of models/digits.
 *
 *   tsc models/digits/digits.py --weights models/digits/digits.safetensors \
 *       --input 'image:float32[N,1,8,8]' -o digits.tsm
 *   digits digits.tsm models/digits/images/3.pgm ...
 *
 * Shows how an application embeds libtsrt: load once, one session, run, read the result. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/tsrt.h"

enum { SIDE = 8, PIXELS = SIDE * SIDE, CLASSES = 10 };

static int fail(tsrt_status *status) {
    fprintf(stderr, "digits: %s\n", tsrt_status_message(status));
    tsrt_status_release(status);
    return 1;
}

/* Reads an 8x8 binary PGM with 16 grey levels. */
static int read_image(const char *path, float *pixels) {
    FILE *file = fopen(path, "rb");
    unsigned char bytes[PIXELS];
    int width = 0, height = 0, levels = 0;
    int is_right = file && fscanf(file, "P5 %d %d %d", &width, &height, &levels) == 3 &&
                   width == SIDE && height == SIDE && levels == 16 && fgetc(file) != EOF &&
                   fread(bytes, 1, PIXELS, file) == PIXELS;
    if (file)
        fclose(file);
    if (!is_right) {
        fprintf(stderr, "digits: %s: expected a PGM of 8x8 pixels with 16 grey levels\n", path);
        return 0;
    }
    for (int i = 0; i < PIXELS; i++)
        pixels[i] = bytes[i];
    return 1;
}

static void show(const float *pixels, const float *probabilities) {
    static const char shades[] = " .:-=+*#%@";
    int best = 0, second = 0;
    for (int i = 0; i < CLASSES; i++) {
        if (probabilities[i] > probabilities[best]) {
            second = best;
            best = i;
        } else if (i != best && (second == best || probabilities[i] > probabilities[second])) {
            second = i;
        }
    }
    for (int y = 0; y < SIDE; y++) {
        fputs("    ", stdout);
        for (int x = 0; x < SIDE; x++) {
            char c = shades[(int)(pixels[y * SIDE + x] * 9.0f / 16.0f)];
            putchar(c);
            putchar(c);
        }
        if (y == 3)
            printf("   a %d (%.1f %%)", best, 100.0 * (double)probabilities[best]);
        if (y == 4)
            printf("   or a %d (%.1f %%)", second, 100.0 * (double)probabilities[second]);
        putchar('\n');
    }
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: digits MODEL.tsm IMAGE.pgm...\n");
        return 2;
    }
    tsrt_model *model = NULL;
    tsrt_session *session = NULL;
    tsrt_value *image = NULL, *result = NULL;
    int exit_code = 0;
    tsrt_status *status = tsrt_model_load(argv[1], NULL, &model);
    if (!status)
        status = tsrt_session_create(model, NULL, &session);
    for (int i = 2; i < argc && !status; i++) {
        float pixels[PIXELS];
        const int64_t sizes[4] = {1, 1, SIDE, SIDE};
        if (!read_image(argv[i], pixels)) {
            exit_code = 1;
            break;
        }
        /* The tensor borrows `pixels`: nothing is copied. */
        status = tsrt_value_wrap_tensor(TSRT_FLOAT32, sizes, NULL, 4, pixels, NULL, NULL, &image);
        if (!status)
            status = tsrt_run(session, 0, &image, 1, NULL, &result);
        tsrt_tensor_view view = {.size = sizeof view};
        if (!status)
            status = tsrt_value_view_tensor(result, &view);
        if (!status) {
            printf("%s\n", argv[i]);
            show(pixels, view.data);
        }
        tsrt_value_release(result);
        tsrt_value_release(image);
        result = image = NULL;
    }
    if (status)
        exit_code = fail(status);
    tsrt_session_release(session);
    tsrt_model_release(model);
    return exit_code;
}
