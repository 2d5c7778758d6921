/* tools/report.c - the page of --report: entries with their memory, kernels with what was fused into
 * them, what takes the dynamic path and why, and the passes. No scripts, nothing from elsewhere. */
#include "tools/report.h"

#include "ir/live_memory.h"
#include "ir/strided_view.h"

static const char style[] =
    "<style>body{font:14px/1.4 sans-serif;margin:2em;max-width:80em}table{border-collapse:collapse}"
    "td,th{border-bottom:1px solid #ccc;padding:2px 8px;text-align:left;vertical-align:top}"
    "td.n{text-align:right;font-variant-numeric:tabular-nums}tr.changed td:nth-child(2){font-weight:bold}"
    "code{font-size:13px}</style>\n";

static void put_text(ts_buffer *out, ts_str s) {
    for (size_t i = 0; i < s.length; i++)
        switch (s.data[i]) {
        case '<': ts_buffer_text(out, "&lt;"); break;
        case '>': ts_buffer_text(out, "&gt;"); break;
        case '&': ts_buffer_text(out, "&amp;"); break;
        case '"': ts_buffer_text(out, "&quot;"); break;
        default: ts_buffer_char(out, s.data[i]); break;
        }
}

static void put_place(ts_buffer *out, ts_place place) {
    ts_str file = place.file;
    for (size_t i = file.length; i-- > 0;)
        if (file.data[i] == '/') {
            file = (ts_str){file.data + i + 1, file.length - i - 1};
            break;
        }
    if (!place.line)
        return;
    put_text(out, file);
    ts_buffer_format(out, ":%d", place.line);
}

static void put_type(const report_input *in, ts_buffer *out, const ir_type *t) {
    ts_buffer_text(out, "<code>");
    put_text(out, ir_type_text(in->module, t));
    ts_buffer_text(out, "</code>");
}

/* ---- kernels ---- */

/* Bytes that a launch reads and writes: operands, results, constants of the body; -1: sizes vary. */
static int64_t traffic(const ir_op *op) {
    int64_t sum = 0;
    for (size_t i = 0; i < op->operand_count + op->result_count; i++) {
        const ir_type *t = i < op->operand_count ? op->operands[i]->type
                                                 : op->results[i - op->operand_count]->type;
        int64_t bytes = t->kind == IR_TENSOR ? ir_buffer_bytes(t) : 8;
        if (bytes < 0)
            return -1;
        sum += bytes;
    }
    for (const ir_op *inner = op->regions[0]->first; inner; inner = inner->next)
        if (inner->opcode == IR_OP_CONST && inner->value.tag == RT_TAG_TENSOR)
            sum += (int64_t)(inner->value.as.tensor->element_count *
                             (int64_t)rt_dtype_size((rt_dtype)inner->value.as.tensor->dtype));
    return sum;
}

static void put_kernel(const report_input *in, const report_kernel *k, ts_buffer *out) {
    ts_buffer_text(out, "<tr><td>");
    put_text(out, k->symbol);
    ts_buffer_format(out, "</td><td>%s</td><td>", k->level);
    bool first = true;
    for (const ir_op *inner = k->op->regions[0]->first; inner; inner = inner->next)
        if (inner->opcode == IR_OP_CORE) {
            ts_buffer_text(out, first ? "" : ", ");
            put_text(out, rt_op_name(inner->core));
            first = false;
        }
    ts_buffer_text(out, "</td><td>");
    for (size_t i = 0; i < k->op->result_count; i++)
        put_type(in, out, k->op->results[i]->type);
    ts_buffer_text(out, "</td>");
    int64_t bytes = traffic(k->op);
    if (k->flops > 0)
        ts_buffer_format(out, "<td class=n>%.0f</td>", k->flops);
    else
        ts_buffer_text(out, "<td class=n>with the sizes</td>");
    if (bytes >= 0)
        ts_buffer_format(out, "<td class=n>%lld</td>", (long long)bytes);
    else
        ts_buffer_text(out, "<td class=n>with the sizes</td>");
    ts_buffer_format(out, "<td>%s</td><td>", k->variant);
    put_place(out, k->op->place);
    ts_buffer_text(out, "</td></tr>\n");
}

/* ---- the dynamic path ---- */

static const char *unknown_of(const ir_type *t) {
    if (t->kind == IR_OPTIONAL || t->kind == IR_UNION || t->kind == IR_ANY)
        return "may be of several types";
    if (t->kind == IR_LIST)
        return t->arg_count ? unknown_of(t->args[0]) : NULL;
    if (t->kind != IR_TENSOR)
        return NULL;
    return t->dtype == RT_DTYPE_UNKNOWN ? "has an unknown dtype" : t->rank < 0 ? "has an unknown rank" : NULL;
}

static void put_reason(const ir_op *op, ts_buffer *out) {
    if (rt_op_get(op->core)->lower == LOWER_none) {
        ts_buffer_text(out, "this operator has no compiled form");
        return;
    }
    if (ir_view_kind_of(op) != IR_VIEW_NONE) {
        ts_buffer_text(out, "a view: it moves no data");
        return;
    }
    for (size_t i = 0; i < op->operand_count; i++) {
        const char *what = unknown_of(op->operands[i]->type);
        if (!what)
            continue;
        ts_buffer_format(out, "operand %zu ", i + 1);
        if (op->operands[i]->name.length) {
            ts_buffer_text(out, "(%");
            put_text(out, op->operands[i]->name);
            ts_buffer_text(out, ") ");
        }
        ts_buffer_text(out, what);
        return;
    }
    for (size_t i = 0; i < op->result_count; i++)
        if (unknown_of(op->results[i]->type)) {
            ts_buffer_format(out, "its result %s", unknown_of(op->results[i]->type));
            return;
        }
    ts_buffer_text(out, "its dtypes, sizes or arguments are outside of what kernels take");
}

static size_t put_dynamic(const report_input *in, const ir_block *block, int depth, ts_buffer *out) {
    size_t count = 0;
    for (const ir_op *op = block->first; op; op = op->next) {
        bool on_tensors = op->opcode == IR_OP_CORE && rt_op_get(op->core)->lower != LOWER_scalar;
        if (on_tensors) {
            bool any = false;
            for (size_t i = 0; i < op->operand_count; i++)
                any |= op->operands[i]->type->kind == IR_TENSOR;
            for (size_t i = 0; i < op->result_count; i++)
                any |= op->results[i]->type->kind == IR_TENSOR;
            on_tensors = any;
        }
        if (on_tensors) {
            count++;
            ts_buffer_text(out, "<tr><td>");
            put_text(out, rt_op_name(op->core));
            ts_buffer_text(out, "</td><td>");
            for (size_t i = 0; i < op->result_count; i++)
                put_type(in, out, op->results[i]->type);
            ts_buffer_text(out, "</td><td>");
            put_reason(op, out);
            ts_buffer_text(out, "</td><td>");
            put_place(out, op->place);
            ts_buffer_text(out, "</td></tr>\n");
        }
        for (size_t i = 0; op->opcode != IR_OP_KERNEL && depth < 500 && i < op->region_count; i++)
            count += put_dynamic(in, op->regions[i], depth + 1, out);
    }
    return count;
}

/* ---- the passes ---- */

/* number, pass, changed, before, after, time, bytes, counters */
static void put_passes(ts_str text, ts_buffer *out) {
    bool is_head = true;
    for (size_t at = 0; at < text.length; is_head = false) {
        size_t end = at;
        while (end < text.length && text.data[end] != '\n')
            end++;
        ts_str line = {text.data + at, end - at};
        bool is_changed = false;
        for (size_t i = 0; i + 5 <= line.length; i++)
            is_changed |= memcmp(line.data + i, "\tyes\t", 5) == 0;
        ts_buffer_text(out, is_changed ? "<tr class=changed>" : "<tr>");
        for (size_t i = 0, from = 0; i <= line.length; i++)
            if (i == line.length || line.data[i] == '\t') {
                ts_buffer_text(out, is_head ? "<th>" : "<td>");
                put_text(out, (ts_str){line.data + from, i - from});
                from = i + 1;
            }
        ts_buffer_text(out, "</tr>\n");
        at = end + 1;
    }
}

void report_write(const report_input *in, ts_buffer *out) {
    ts_buffer_text(out, "<!doctype html><meta charset=utf-8><title>");
    put_text(out, in->source);
    ts_buffer_format(out, "</title>\n%s<h1>", style);
    put_text(out, in->source);
    ts_buffer_text(out, "</h1>\n<h2>Entries</h2>\n<table><tr><th>entry<th>memory of a run</tr>\n");
    for (ir_function *f = in->module->functions; f; f = f->next)
        if (f->is_entry && f->body) {
            ir_live_memory need = ir_live_memory_of(in->module, f);
            ts_buffer_text(out, "<tr><td>");
            put_text(out, f->name);
            ts_buffer_text(out, "</td><td>");
            put_text(out, ir_live_memory_text(in->module, &need));
            ts_buffer_text(out, "</td></tr>\n");
        }
    ts_buffer_text(out, "</table>\n<h2>Kernels</h2>\n<p>What is the same in several places is compiled once.</p>\n"
                        "<table><tr><th>kernel<th>level<th>operators<th>result<th>operations<th>bytes"
                        "<th>variant<th>place</tr>\n");
    for (size_t i = 0; i < in->kernel_count; i++)
        put_kernel(in, &in->kernels[i], out);
    ts_buffer_text(out, "</table>\n<h2>On the dynamic path</h2>\n<table><tr><th>operator<th>result<th>why<th>place</tr>\n");
    size_t count = 0;
    for (ir_function *f = in->module->functions; f; f = f->next)
        if (f->body)
            count += put_dynamic(in, f->body, 0, out);
    ts_buffer_format(out, "</table>\n<p>%zu operators on tensors.</p>\n<h2>Passes</h2>\n<table>\n", count);
    put_passes(in->passes, out);
    ts_buffer_text(out, "</table>\n");
}
