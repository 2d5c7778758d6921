/* tools/options.c - parses a command line by its table and prints the table as help. */
#include "tools/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Levenshtein distance, given up beyond limit. */
static size_t distance(const char *a, const char *b, size_t limit) {
    enum { LONGEST = 63 };
    size_t n = strlen(a), m = strlen(b), row[LONGEST + 1];
    if (n > LONGEST || m > LONGEST)
        return limit + 1;
    for (size_t k = 0; k <= m; k++)
        row[k] = k;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t k = 1; k <= m; k++) {
            size_t replaced = diagonal + (a[i - 1] != b[k - 1]);
            diagonal = row[k];
            size_t best = row[k] < row[k - 1] ? row[k] + 1 : row[k - 1] + 1;
            row[k] = replaced < best ? replaced : best;
        }
    }
    return row[m];
}

static void consider(const char *text, const char *word, const char **best, size_t *best_distance) {
    size_t limit = strlen(text) / 3 + 1, d = distance(text, word, limit);
    if (d <= limit && d < *best_distance) {
        *best = word;
        *best_distance = d;
    }
}

const char *options_closest(const char *text, const char *const *words) {
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;
    for (; *words; words++)
        consider(text, *words, &best, &best_distance);
    return best;
}

ts_status options_unknown_word(const char *what, const char *text, const char *const *words) {
    const char *close = options_closest(text, words);
    ts_buffer list = {0};
    for (size_t i = 0; words[i]; i++)
        ts_buffer_format(&list, "%s%s", i ? ", " : "", words[i]);
    ts_buffer_char(&list, 0);
    ts_status status =
        ts_error_make(TS_ERR_INVALID_INPUT, "%s '%.80s' is unknown%s%s%s; there are: %s", what, text,
                      close ? ", did you mean '" : "", close ? close : "", close ? "'?" : "",
                      list.failed ? "" : list.data);
    ts_buffer_deinit(&list);
    return status;
}

static const option_row *find(const option_row *rows, size_t count, const char *name,
                              size_t length) {
    for (size_t i = 0; i < count; i++) {
        if (rows[i].kind == OPTION_HEADING)
            continue;
        if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0)
            return &rows[i];
        if (rows[i].brief && strlen(rows[i].brief) == length &&
            memcmp(rows[i].brief, name, length) == 0)
            return &rows[i];
    }
    return NULL;
}

static ts_status unknown(const option_row *rows, size_t count, const char *text, size_t length) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), text);
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;
    for (size_t i = 0; i < count; i++)
        if (rows[i].kind != OPTION_HEADING)
            consider(name, rows[i].name, &best, &best_distance);
    if (best)
        return ts_error_make(TS_ERR_INVALID_INPUT, "unknown option %s, did you mean %s?", name, best);
    return ts_error_make(TS_ERR_INVALID_INPUT, "unknown option %s; --help lists them", name);
}

static void add(options *o, const option_row *row, const char *text) {
    option_values *v = &o->values[row - o->rows];
    v->texts[v->count++] = text;
}

static ts_status parse_one(options *o, int argc, char **argv, int *at) {
    const char *text = argv[*at], *equals = strchr(text, '=');
    size_t length = text[1] == '-' && equals ? (size_t)(equals - text) : strlen(text);
    const option_row *row = find(o->rows, o->row_count, text, length);
    const char *value = text[1] == '-' && equals ? equals + 1 : NULL;
    if (!row && text[1] != '-' && text[2]) { /* -O2, -omodel.tsm */
        row = find(o->rows, o->row_count, text, 2);
        if (row && row->kind == OPTION_FLAG)
            row = NULL;
        value = text + 2;
    }
    if (!row)
        return unknown(o->rows, o->row_count, text, length);
    if (row->missing)
        return ts_error_make(TS_ERR_UNSUPPORTED, "%s is not supported yet: %s", row->name,
                             row->missing);
    if (row->kind == OPTION_FLAG) {
        if (value)
            return ts_error_make(TS_ERR_INVALID_INPUT, "%s takes no value", row->name);
        add(o, row, "");
        return NULL;
    }
    if (!value && row->kind != OPTION_JOINED && *at + 1 < argc)
        value = argv[++*at];
    if (!value)
        return ts_error_make(TS_ERR_INVALID_INPUT, "%s needs a value: %s %s", row->name, row->name,
                             row->value);
    add(o, row, value);
    return NULL;
}

ts_status options_parse(const option_row *rows, size_t row_count, int argc, char **argv,
                        options *out) {
    size_t slots = argc > 0 ? (size_t)argc : 1;
    *out = (options){.rows = rows, .row_count = row_count};
    out->values = calloc(row_count + 1, sizeof *out->values);
    out->storage = calloc((row_count + 1) * slots, sizeof *out->storage);
    if (!out->values || !out->storage)
        return ts_no_memory();
    for (size_t i = 0; i < row_count; i++)
        out->values[i].texts = out->storage + i * slots;
    out->operands = out->storage + row_count * slots;
    bool only_operands = false;
    for (int i = 1; i < argc; i++) {
        if (only_operands || argv[i][0] != '-' || !argv[i][1])
            out->operands[out->operand_count++] = argv[i];
        else if (strcmp(argv[i], "--") == 0)
            only_operands = true;
        else
            TS_TRY(parse_one(out, argc, argv, &i));
    }
    return NULL;
}

void options_deinit(options *o) {
    free(o->values);
    free(o->storage);
    *o = (options){0};
}

const option_values *options_all(const options *o, const char *name) {
    static const option_values none = {0};
    const option_row *row = find(o->rows, o->row_count, name, strlen(name));
    return row ? &o->values[row - o->rows] : &none;
}

const char *options_get(const options *o, const char *name) {
    const option_values *v = options_all(o, name);
    return v->count ? v->texts[v->count - 1] : NULL;
}

bool options_has(const options *o, const char *name) { return options_all(o, name)->count > 0; }

ts_status options_number(const options *o, const char *name, int64_t low, int64_t high,
                         int64_t *out) {
    const char *text = options_get(o, name);
    if (!text)
        return NULL;
    char *end = NULL;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (errno || end == text || *end || n < low || n > high)
        return ts_error_make(TS_ERR_INVALID_INPUT, "%s: expected a whole number from %lld to %lld, "
                             "found '%.80s'", name, (long long)low, (long long)high, text);
    *out = n;
    return NULL;
}

void options_help(const option_row *rows, size_t row_count, ts_buffer *out) {
    enum { COLUMN = 30 };
    for (size_t i = 0; i < row_count; i++) {
        const option_row *r = &rows[i];
        if (r->kind == OPTION_HEADING) {
            ts_buffer_format(out, "\n%s\n", r->name);
            continue;
        }
        size_t start = out->length;
        ts_buffer_format(out, "  %s%s%s", r->brief ? r->brief : "", r->brief ? ", " : "", r->name);
        if (r->value)
            ts_buffer_format(out, "%s%s", r->kind == OPTION_JOINED ? "" : " ", r->value);
        if (out->length - start >= COLUMN) {
            ts_buffer_char(out, '\n');
            start = out->length;
        }
        for (const char *line = r->help; *line;) {
            size_t length = strcspn(line, "\n");
            while (out->length - start < COLUMN && !out->failed)
                ts_buffer_char(out, ' ');
            ts_buffer_append(out, line, length);
            line += length + (line[length] == '\n');
            if (*line) {
                ts_buffer_char(out, '\n');
                start = out->length;
            }
        }
        if (r->missing)
            ts_buffer_text(out, " (not supported yet)");
        ts_buffer_char(out, '\n');
    }
}
