// Runs a model of one input, float32[1,3], with owners that release by themselves.
//
//     c++ -Iruntime docs/examples/run.cpp -Lbuild/lib -ltsrt -Wl,-rpath,build/lib -o run && ./run model.tsm
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

#include <tsrt.h>

namespace {

struct Release {
    void operator()(tsrt_model *m) const { tsrt_model_release(m); }
    void operator()(tsrt_session *s) const { tsrt_session_release(s); }
    void operator()(tsrt_value *v) const { tsrt_value_release(v); }
};
template <class T> using Owned = std::unique_ptr<T, Release>;

void check(tsrt_status *status) {
    if (!status)
        return;
    std::string text = tsrt_status_message(status);
    tsrt_status_release(status);
    throw std::runtime_error(text);
}

// Calls f(..., &out) and owns what it gives.
template <class T, class F> Owned<T> get(F f) {
    T *out = nullptr;
    check(f(&out));
    return Owned<T>(out);
}

} // namespace

int main(int argc, char **argv) try {
    if (argc != 2) {
        std::cerr << "usage: run MODEL.tsm\n";
        return 2;
    }
    auto model = get<tsrt_model>([&](auto out) { return tsrt_model_load(argv[1], nullptr, out); });
    auto session =
        get<tsrt_session>([&](auto out) { return tsrt_session_create(model.get(), nullptr, out); });
    float data[3] = {1, 2, 3};
    const int64_t sizes[2] = {1, 3};
    auto input = get<tsrt_value>([&](auto out) {
        return tsrt_value_wrap_tensor(TSRT_FLOAT32, sizes, nullptr, 2, data, nullptr, nullptr, out);
    });
    tsrt_value *args[] = {input.get()};
    auto result = get<tsrt_value>(
        [&](auto out) { return tsrt_run(session.get(), 0, args, 1, nullptr, out); });
    auto text =
        get<tsrt_value>([&](auto out) { return tsrt_value_to_str(result.get(), 0, out); });
    std::cout << tsrt_value_str(text.get(), nullptr) << '\n';
    return 0;
} catch (const std::exception &e) {
    std::cerr << e.what() << '\n';
    return 1;
}
