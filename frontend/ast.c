/* frontend/ast.c - names of the tree's parts, and the tree as text. */
#include "frontend/ast.h"

ts_place ast_place(const ast_node *node) {
    if (!node || !node->source)
        return (ts_place){0};
    return fe_source_place(node->source, node->offset, node->length);
}

const char *ast_kind_name(ast_kind kind) {
    static const char *const names[] = {
#define KIND(name, members) #name,
        AST_KINDS(KIND)
#undef KIND
    };
    return kind < AST_KIND_COUNT ? names[kind] : "?";
}

const char *ast_operator_text(ast_operator op) {
    switch (op) {
    case AST_ADD: return "+";
    case AST_SUB: return "-";
    case AST_MUL: return "*";
    case AST_DIV: return "/";
    case AST_FLOORDIV: return "//";
    case AST_MOD: return "%";
    case AST_POW: return "**";
    case AST_MATMUL: return "@";
    case AST_LSHIFT: return "<<";
    case AST_RSHIFT: return ">>";
    case AST_BITAND: return "&";
    case AST_BITOR: return "|";
    case AST_BITXOR: return "^";
    case AST_NOT: return "not";
    case AST_NEG: return "-";
    case AST_POS: return "+";
    case AST_INVERT: return "~";
    case AST_AND: return "and";
    case AST_OR: return "or";
    case AST_EQ: return "==";
    case AST_NE: return "!=";
    case AST_LT: return "<";
    case AST_LE: return "<=";
    case AST_GT: return ">";
    case AST_GE: return ">=";
    case AST_IS: return "is";
    case AST_IS_NOT: return "is not";
    case AST_IN: return "in";
    case AST_NOT_IN: return "not in";
    }
    return "?";
}

static void put_text(ts_buffer *out, ts_str s) {
    ts_buffer_char(out, '\'');
    for (size_t i = 0; i < s.length; i++) {
        unsigned char c = (unsigned char)s.data[i];
        if (c == '\n')
            ts_buffer_text(out, "\\n");
        else if (c < 32 || c == 127)
            ts_buffer_format(out, "\\x%02x", c);
        else if (c == '\'' || c == '\\')
            ts_buffer_format(out, "\\%c", c);
        else
            ts_buffer_char(out, (char)c);
    }
    ts_buffer_char(out, '\'');
}

static void dump(const ast_node *node, const char *label, int indent, ts_buffer *out);

static void dump_list(const ast_list *list, const char *label, int indent, ts_buffer *out) {
    for (size_t i = 0; i < list->count; i++)
        dump(list->items[i], label, indent, out);
}

/* One level of recursion a tree level: AST_MAX_DEPTH bounds it. */
static void dump(const ast_node *node, const char *label, int indent, ts_buffer *out) {
    for (int i = 0; i < indent; i++)
        ts_buffer_text(out, "  ");
    if (*label)
        ts_buffer_format(out, "%s: ", label);
    if (!node) {
        ts_buffer_text(out, "-\n");
        return;
    }
    ts_buffer_text(out, ast_kind_name(node->kind));
    switch (node->kind) {
    case AST_UNARY:
    case AST_BINARY:
    case AST_BOOLOP:
    case AST_AUG_ASSIGN:
        ts_buffer_format(out, " %s", ast_operator_text(node->op));
        break;
    case AST_FLOAT:
    case AST_IMAGINARY:
        ts_buffer_format(out, " %.17g", node->number);
        break;
    case AST_STRING:
        ts_buffer_char(out, ' ');
        put_text(out, node->text);
        break;
    default:
        if (node->text.length) {
            ts_buffer_char(out, ' ');
            ts_buffer_str(out, node->text);
        }
    }
    for (size_t i = 0; node->ops && i + 1 < node->list.count; i++)
        ts_buffer_format(out, " %s", ast_operator_text(node->ops[i]));
    if (node->other.length) {
        ts_buffer_text(out, " as ");
        ts_buffer_str(out, node->other);
    }
    if (node->type_comment.length) {
        ts_buffer_text(out, " type ");
        put_text(out, node->type_comment);
    }
    ts_place place = ast_place(node);
    ts_buffer_format(out, " %d:%d\n", place.line, place.column);
    indent++;
    dump_list(&node->decorators, "decorator", indent, out);
    for (size_t i = 0; i < node->parameters.count; i++) {
        const ast_parameter *p = &node->parameters.items[i];
        for (int k = 0; k < indent; k++)
            ts_buffer_text(out, "  ");
        ts_buffer_format(out, "parameter %s", p->is_star ? "*" : p->is_double_star ? "**" : "");
        ts_buffer_str(out, p->name);
        ts_buffer_text(out, p->is_keyword_only      ? " keyword-only\n"
                            : p->is_positional_only ? " positional-only\n"
                                                    : "\n");
        if (p->annotation)
            dump(p->annotation, "annotation", indent + 1, out);
        if (p->default_value)
            dump(p->default_value, "default", indent + 1, out);
    }
    if (node->test)
        dump(node->test, "test", indent, out);
    if (node->left)
        dump(node->left, "left", indent, out);
    if (node->right)
        dump(node->right, "right", indent, out);
    if (node->third)
        dump(node->third, "third", indent, out);
    dump_list(&node->list, "", indent, out);
    dump_list(&node->body, "body", indent, out);
    dump_list(&node->orelse, "orelse", indent, out);
    dump_list(&node->finally_body, "finally", indent, out);
}

void ast_dump(const ast_node *node, ts_buffer *out) { dump(node, "", 0, out); }
