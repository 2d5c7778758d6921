/* Loads a model, runs it on zeroes of the declared shapes, prints the results.
 *
 *     cc -Iruntime docs/examples/run.c -Lbuild/lib -ltsrt -Wl,-rpath,build/lib -o run && ./run model.tsm */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tsrt.h>

/* Prints an error and releases it; 1 where there was one. */
static int failed(tsrt_status *status) {
    if (!status)
        return 0;
    size_t length;
    int line;
    const char *file = tsrt_status_place(status, &length, &line, NULL);
    if (line)
        fprintf(stderr, "%.*s:%d: ", (int)length, file, line);
    if (tsrt_status_exception(status)[0])
        fprintf(stderr, "%s: ", tsrt_status_exception(status));
    fprintf(stderr, "%s\n", tsrt_status_message(status));
    tsrt_status_release(status);
    return 1;
}

/* Zeroes of "float32[2,3]"; sizes that are letters become 1. NULL: a type this example cannot make. */
static tsrt_value *zeroes(const char *type) {
    int64_t sizes[16];
    int rank = 0;
    char name[32] = "";
    const char *at = strchr(type, '[');
    if (!at || (size_t)(at - type) >= sizeof name)
        return NULL;
    memcpy(name, type, (size_t)(at - type));
    int dtype = tsrt_dtype_parse(name);
    if (dtype < 0)
        return NULL;
    for (at++; *at && *at != ']' && rank < 16; rank++) {
        long size = strtol(at, NULL, 10);
        sizes[rank] = size > 0 ? size : 1;
        at += strcspn(at, ",]");
        at += *at == ',';
    }
    tsrt_value *value;
    if (failed(tsrt_value_make_tensor((tsrt_dtype)dtype, sizes, rank, &value)))
        return NULL;
    tsrt_tensor_view view;
    view.size = sizeof view;
    if (!failed(tsrt_value_view_tensor(value, &view)))
        memset(view.data, 0, (size_t)view.element_count * tsrt_dtype_bytes(view.dtype));
    return value;
}

int main(int argc, char **argv) {
    tsrt_model *model = NULL;
    tsrt_session *session = NULL;
    tsrt_value *args[16] = {NULL}, *result = NULL, *text = NULL;
    int status = 1;
    if (argc != 2) {
        fprintf(stderr, "usage: run MODEL.tsm\n");
        return 2;
    }
    if (failed(tsrt_model_load(argv[1], NULL, &model)) ||
        failed(tsrt_session_create(model, NULL, &session)))
        goto done;
    tsrt_entry_info entry;
    entry.size = sizeof entry;
    if (failed(tsrt_model_get_entry(model, 0, &entry)))
        goto done;
    for (size_t i = 0; i < entry.input_count && i < 16; i++) {
        tsrt_port_info port;
        port.size = sizeof port;
        if (failed(tsrt_model_get_input(model, 0, i, &port)))
            goto done;
        args[i] = zeroes(port.type); /* NULL asks for the input's default */
    }
    if (failed(tsrt_run(session, 0, args, entry.input_count < 16 ? entry.input_count : 16, NULL,
                        &result)) ||
        failed(tsrt_value_to_str(result, 0, &text)))
        goto done;
    printf("%s\n", tsrt_value_str(text, NULL));
    status = 0;
done:
    tsrt_value_release(text);
    tsrt_value_release(result);
    for (size_t i = 0; i < 16; i++)
        tsrt_value_release(args[i]);
    tsrt_session_release(session);
    tsrt_model_release(model);
    return status;
}
