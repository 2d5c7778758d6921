/* frontend/scope.c - what a name means: scopes, Python's builtins, the namespaces that scripts
 * import (torch, torch.nn, math, typing ...). */
#include <math.h>

#include "frontend/frontend_internal.h"

/* ---- scopes ---- */

fe_scope *fe_scope_make(ts_arena *arena, fe_scope *parent, const fe_source *source, ts_str path) {
    fe_scope *scope = TS_NEW(arena, fe_scope);
    scope->parent = parent;
    scope->source = source;
    scope->path = path;
    return scope;
}

void fe_scope_set(ts_arena *arena, fe_scope *scope, ts_str name, fe_binding binding) {
    fe_binding *copy = TS_NEW(arena, fe_binding);
    *copy = binding;
    fe_map_set(arena, &scope->names, ts_arena_str(arena, name), copy);
}

static bool in_words(const char *words, ts_str name) {
    for (const char *at = words; *at;) {
        size_t n = strcspn(at, " ");
        if (n == name.length && memcmp(at, name.data, n) == 0)
            return true;
        at += n;
        at += strspn(at, " ");
    }
    return false;
}

static fe_binding named(struct fe_context *fe, const char *prefix, ts_str name) {
    return (fe_binding){.kind = FE_NAME,
                        .path = ts_arena_format(fe->arena, "%s.%.*s", prefix, (int)name.length,
                                                name.data)};
}

static const char builtin_names[] =
    "abs all any ascii bin bool bytearray bytes callable compile eval exec globals input locals memoryview "
    "breakpoint chr complex dict dir divmod enumerate filter float format "
    "frozenset getattr hasattr hash hex id int isinstance issubclass iter len list map max min next "
    "object oct open ord pow print property range repr reversed round set setattr slice sorted "
    "staticmethod classmethod str sum super tuple type vars zip __name__ __import__ NotImplemented Ellipsis";
static const char archive_names[] = "annotate uninitialized unchecked_cast ops CONSTANTS fork inf nan infj "
                                    "nanj Tensor number NoneType Device Generator Stream Any List Dict "
                                    "Optional Tuple Union Future Module NamedTuple Enum Interface "
                                    "ModuleInterface Final Await";

fe_binding fe_scope_lookup(struct fe_context *fe, const fe_scope *scope, ts_str name) {
    bool is_archive = false;
    for (const fe_scope *s = scope; s; s = s->parent) {
        is_archive = is_archive || (s->source && s->source->is_archive);
        fe_binding *found = fe_map_get(&s->names, name);
        if (found)
            return *found;
    }
    if (is_archive) {
        if (ts_str_is(name, "torch") || ts_str_is(name, "__torch__"))
            return (fe_binding){.kind = FE_NAMESPACE, .path = name};
        if (ts_str_is(name, "inf"))
            return (fe_binding){.kind = FE_VALUE, .value = rt_float(HUGE_VAL)};
        if (ts_str_is(name, "nan"))
            return (fe_binding){.kind = FE_VALUE, .value = rt_float((double)NAN)};
        if (ts_str_is(name, "ops"))
            return (fe_binding){.kind = FE_NAMESPACE, .path = TS_STR("ops")};
        if (in_words(archive_names, name))
            return named(fe, "archive", name);
    }
    bool is_library = false;
    for (const fe_scope *s = scope; s && !is_library; s = s->parent)
        is_library = s->source && s->source->is_library;
    if (is_library) {
        /* Library files import nothing: torch, nn, F, math and typing's names are there. */
        if (ts_str_is(name, "torch") || ts_str_is(name, "math"))
            return (fe_binding){.kind = FE_NAMESPACE, .path = name};
        if (ts_str_is(name, "nn"))
            return (fe_binding){.kind = FE_NAMESPACE, .path = TS_STR("torch.nn")};
        if (ts_str_is(name, "F"))
            return (fe_binding){.kind = FE_NAMESPACE, .path = TS_STR("torch.nn.functional")};
        if (ts_str_is(name, "init"))
            return (fe_binding){.kind = FE_NAMESPACE, .path = TS_STR("torch.nn.init")};
        if (in_words("Tensor", name))
            return named(fe, "torch", name);
        if (in_words("Capsule Device Generator", name))
            return named(fe, "archive", name);
        if (in_words("Scalar number", name))
            return named(fe, "archive", TS_STR("number"));
        if (in_words("Module Parameter Sequential ModuleList", name)) {
            fe_binding found = fe_namespace_get(fe, TS_STR("torch.nn"), name);
            if (found.kind != FE_UNBOUND)
                return found;
        }
        if (in_words("Any List Dict Optional Tuple Union Callable NamedTuple Final", name))
            return named(fe, "typing", name);
    }
    if (in_words(builtin_names, name))
        return named(fe, "builtins", name);
    fe_class *c = fe_builtin_class(fe, ts_arena_format(fe->arena, "builtins.%.*s",
                                                       (int)name.length, name.data));
    if (c)
        return (fe_binding){.kind = FE_CLASS, .class_ = c};
    return (fe_binding){.kind = FE_UNBOUND};
}

/* ---- namespaces ---- */

static const char *const namespaces[] = {
    "torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils",
    "torch.nn.utils.rnn", "torch.nn.utils.parametrizations", "torch.nn.parameter", "torch.jit", "torch.optim",
    "torch.autograd", "torch.linalg", "torch.special", "torch.fft", "torch.cuda", "torch.backends",
    "torch.utils", "torch.utils.data", "torch._jit_internal", "torch.distributions", "torch.types",
    "torch.optim.lr_scheduler", "torch.signal", "torch.signal.windows", "torch.nn.attention", "torch.autograd.function", "torch.random",
    "torch.functional", "torch.overrides", "torch.version", "torch.ops", "torch.ops.aten",
    "torch.ops.prim", "torch.utils.checkpoint", "torch.amp", "torch.testing", "torch.classes",
    "torch.backends.cudnn", "torch.backends.mkldnn", "torch.backends.quantized", "torch.cuda.amp",
    "torch.backends.mps", "torch.backends.cuda", "torch.backends.mkl", "torch.onnx",
    "typing", "typing_extensions", "math", "enum", "dataclasses", "collections", "collections.abc",
    "abc", "functools", "itertools", "builtins", "copy", "warnings", "__future__", "sys", "os", "os.path",
    "numbers", "types", "operator", "random", "string", "logging", "time", "inspect", "heapq", "bisect",
    "contextlib"};

static bool is_module_path(ts_str path) {
    return ts_str_is(path, "torch.nn.modules") || ts_str_starts_with(path, "torch.nn.modules.");
}

bool fe_namespace_exists(struct fe_context *fe, ts_str path) {
    for (size_t i = 0; i < sizeof namespaces / sizeof *namespaces; i++)
        if (ts_str_is(path, namespaces[i]))
            return true;
    return is_module_path(path) || fe_map_get(&fe->namespaces, path) != NULL;
}

static const char torch_names[] =
    "Tensor device dtype Size Generator no_grad enable_grad inference_mode set_grad_enabled layout "
    "memory_format finfo iinfo FloatTensor LongTensor IntTensor DoubleTensor BoolTensor ByteTensor HalfTensor "
    "ShortTensor CharTensor typename compile is_tensor manual_seed seed initial_seed get_default_dtype "
    "set_default_dtype is_grad_enabled is_autocast_enabled save load autocast _assert get_rng_state "
    "set_rng_state __version__ tensor as_tensor from_numpy is_storage jit_script vmap "
    "set_num_threads get_num_threads set_printoptions use_deterministic_algorithms stack unique";
static const char typing_names[] =
    "Any List Dict Optional Tuple Union Callable NamedTuple Final Set FrozenSet Type TypeVar Generic "
    "Iterable Iterator Sequence Mapping cast TYPE_CHECKING ClassVar Literal Protocol overload "
    "runtime_checkable NoReturn Text Annotated Self TypeAlias MutableMapping Generator Hashable "
    "no_type_check Deque DefaultDict OrderedDict Counter Concatenate ParamSpec final override TypedDict";

/* torch.float32, torch.strided and their like: ints that know their text. */
static bool torch_constant(ts_str name, rt_value *out) {
    rt_dtype dtype = rt_dtype_parse(name);
    if (dtype != RT_DTYPE_UNKNOWN) {
        *out = rt_int_meaning(dtype, RT_MEANING_DTYPE);
        return true;
    }
    for (int meaning = RT_MEANING_LAYOUT; meaning < RT_MEANING_COUNT; meaning++)
        for (int i = 0; i < RT_DTYPE_COUNT; i++) {
            const char *text = rt_meaning_text((rt_meaning)meaning, i);
            if (text && ts_str_is(name, text + strlen("torch."))) {
                *out = rt_int_meaning(i, (rt_meaning)meaning);
                return true;
            }
        }
    return false;
}

static fe_binding torch_get(struct fe_context *fe, ts_str name) {
    rt_value v;
    if (torch_constant(name, &v))
        return (fe_binding){.kind = FE_VALUE, .value = v};
    if (ts_str_is(name, "pi"))
        return (fe_binding){.kind = FE_VALUE, .value = rt_float(3.14159265358979323846)};
    if (ts_str_is(name, "e"))
        return (fe_binding){.kind = FE_VALUE, .value = rt_float(2.71828182845904523536)};
    if (ts_str_is(name, "inf"))
        return (fe_binding){.kind = FE_VALUE, .value = rt_float(HUGE_VAL)};
    if (ts_str_is(name, "nan"))
        return (fe_binding){.kind = FE_VALUE, .value = rt_float((double)NAN)};
    if (in_words(torch_names, name) || fe_operator_exists(fe, name))
        return named(fe, "torch", name);
    return (fe_binding){.kind = FE_UNBOUND};
}

static fe_binding math_get(struct fe_context *fe, ts_str name) {
    static const struct { const char *name; double value; } constants[] = {
        {"pi", 3.14159265358979323846}, {"e", 2.71828182845904523536},
        {"tau", 6.28318530717958647692}, {"inf", HUGE_VAL}};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (ts_str_is(name, constants[i].name))
            return (fe_binding){.kind = FE_VALUE, .value = rt_float(constants[i].value)};
    if (ts_str_is(name, "nan"))
        return (fe_binding){.kind = FE_VALUE, .value = rt_float((double)NAN)};
    if (in_words("acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist erf erfc exp "
                 "exp2 expm1 fabs factorial floor fmod frexp fsum gamma gcd hypot isclose isfinite "
                 "isinf isnan isqrt lcm ldexp lgamma log log10 log1p log2 modf perm pow prod radians "
                 "remainder sin sinh sqrt tan tanh trunc nextafter ulp", name))
        return named(fe, "math", name);
    return (fe_binding){.kind = FE_UNBOUND};
}

fe_binding fe_namespace_get(struct fe_context *fe, ts_str path, ts_str name) {
    fe_scope *user = fe_map_get(&fe->namespaces, path);
    if (user) {
        fe_binding *found = fe_map_get(&user->names, name);
        if (found)
            return *found;
    }
    if (is_module_path(path))
        path = TS_STR("torch.nn");
    if (ts_str_is(path, "torch.nn.parameter") || ts_str_is(path, "torch.nn.attention"))
        path = TS_STR("torch.nn");
    if (ts_str_is(path, "torch.functional") || ts_str_is(path, "torch.random") ||
        ts_str_is(path, "torch.ops.aten"))
        path = TS_STR("torch");
    if (ts_str_is(path, "typing_extensions") || ts_str_is(path, "collections.abc"))
        path = TS_STR("typing");
    ts_str whole = ts_arena_format(fe->arena, "%.*s.%.*s", (int)path.length, path.data,
                                   (int)name.length, name.data);
    if (ts_str_starts_with(path, "__torch__")) {
        fe_binding found = fe_archive_lookup(fe, whole);
        /* A prefix of a qualified name is a namespace, too. */
        return found.kind == FE_UNBOUND ? (fe_binding){.kind = FE_NAMESPACE, .path = whole} : found;
    }
    if (ts_str_is(path, "ops") || ts_str_is(path, "torch.ops"))
        return (fe_binding){.kind = FE_NAMESPACE,
                            .path = ts_arena_format(fe->arena, "ops.%.*s", (int)name.length, name.data)};
    if (ts_str_starts_with(path, "ops."))
        return (fe_binding){.kind = FE_NAME, .path = whole};
    bool is_of_linalg = ts_str_is(whole, "torch.linalg.LinAlgError") || ts_str_is(whole, "torch._C._LinAlgError");
    fe_class *builtin = fe_builtin_class(fe, is_of_linalg ? TS_STR("builtins._LinAlgError") : whole);
    if (builtin)
        return (fe_binding){.kind = FE_CLASS, .class_ = builtin};
    fe_binding library = fe_library_find(fe, path, name);
    if (library.kind != FE_UNBOUND && !ts_str_is(path, "torch"))
        return library;
    if (fe_namespace_exists(fe, whole))
        return (fe_binding){.kind = FE_NAMESPACE, .path = whole};
    if (ts_str_is(path, "torch"))
        return torch_get(fe, name);
    if (ts_str_is(path, "math"))
        return math_get(fe, name);
    if (ts_str_is(path, "sys") && ts_str_is(name, "maxsize"))
        return (fe_binding){.kind = FE_VALUE, .value = rt_int(INT64_MAX)};
    if (ts_str_is(path, "torch.nn.functional")) {
        if (fe_operator_exists(fe, name))
            return named(fe, "torch", name);
        return (fe_binding){.kind = FE_UNBOUND};
    }
    if (ts_str_is(path, "torch.linalg") || ts_str_is(path, "torch.special") ||
        ts_str_is(path, "torch.fft")) {
        ts_str leaf = {path.data + 6, path.length - 6};
        ts_str operator_name = ts_arena_format(fe->arena, "%.*s_%.*s", (int)leaf.length, leaf.data,
                                               (int)name.length, name.data);
        if (!fe_operator_exists(fe, operator_name)) {
            /* torch.fft.fft is the operator fft_fft; torch.special.expit may exist as itself. */
            if (ts_str_is(path, "torch.special") && fe_operator_exists(fe, name))
                return named(fe, "torch", name);
            return (fe_binding){.kind = FE_UNBOUND};
        }
        return named(fe, "torch", operator_name);
    }
    if (ts_str_is(path, "typing") && !in_words(typing_names, name))
        return (fe_binding){.kind = FE_UNBOUND};
    if (ts_str_is(path, "torch.nn")) {
        if (in_words("Parameter Buffer UninitializedParameter", name))
            return (fe_binding){.kind = FE_NAME, .path = whole};
        return (fe_binding){.kind = FE_UNBOUND};
    }
    if (ts_str_is(path, "torch.nn.init") || ts_str_is(path, "torch.optim") ||
        ts_str_is(path, "__torch__"))
        return (fe_binding){.kind = FE_UNBOUND};
    if (fe_namespace_exists(fe, path))
        return (fe_binding){.kind = FE_NAME, .path = whole};
    return (fe_binding){.kind = FE_UNBOUND};
}

fe_binding fe_resolve_dotted(struct fe_context *fe, const fe_scope *scope, const ast_node *node) {
    if (!node)
        return (fe_binding){.kind = FE_UNBOUND};
    if (node->kind == AST_NAME)
        return fe_scope_lookup(fe, scope, node->text);
    if (node->kind != AST_ATTRIBUTE)
        return (fe_binding){.kind = FE_UNBOUND};
    fe_binding left = fe_resolve_dotted(fe, scope, node->left);
    if (left.kind == FE_NAMESPACE)
        return fe_namespace_get(fe, left.path, node->text);
    if (left.kind == FE_NAME)
        return (fe_binding){.kind = FE_NAME,
                            .path = ts_arena_format(fe->arena, "%.*s.%.*s", (int)left.path.length,
                                                    left.path.data, (int)node->text.length,
                                                    node->text.data)};
    if (left.kind == FE_CLASS) {
        fe_function *method = fe_class_method(left.class_, node->text);
        if (method)
            return (fe_binding){.kind = FE_FUNCTION, .function = method};
        fe_class_variable *variable = fe_class_find_variable(left.class_, node->text);
        if (variable && variable->is_evaluated)
            return (fe_binding){.kind = FE_VALUE, .value = variable->value};
    }
    return (fe_binding){.kind = FE_UNBOUND};
}

/* ---- bindings as values ---- */

static const char binding_kind[] = "binding";

ts_status fe_binding_to_value(struct fe_context *fe, fe_binding binding, rt_value *out) {
    *out = rt_none();
    if (binding.kind == FE_VALUE) {
        *out = rt_retain(binding.value);
        return NULL;
    }
    fe_binding *copy = TS_NEW(fe->arena, fe_binding);
    *copy = binding;
    if (binding.kind == FE_METHOD)
        ir_module_retain(fe->module, binding.value);
    return rt_capsule_make(RT_TAG_FUNCTION, binding_kind, copy, NULL, out);
}

fe_binding fe_binding_of_value(rt_value v) {
    if (v.tag == RT_TAG_FUNCTION) {
        const rt_capsule *capsule = (const rt_capsule *)v.as.counted;
        if (capsule->kind == binding_kind)
            return *(const fe_binding *)capsule->pointer;
    }
    return (fe_binding){.kind = FE_VALUE, .value = v};
}
