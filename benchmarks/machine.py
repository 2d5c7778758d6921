"""What the benchmarks share: the machine, its roofline, files of inputs. Standard library only."""
import json
import os
import platform
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def processor():
    """The processor's name as the system gives it."""
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def compile_c(source, out):
    """Builds a C program for this machine; False where there is no compiler."""
    try:
        return subprocess.run([os.environ.get("CC", "cc"), "-O2", "-march=native", "-pthread", source, "-o", out],
                              capture_output=True).returncode == 0
    except OSError:
        return False


def roofline(threads):
    """{threads: {gflops, read_gbs, copy_gbs}} measured by roofline.c; {} where there is no C compiler."""
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "roofline")
        if not compile_c(os.path.join(HERE, "roofline.c"), program):
            return {}
        lines = subprocess.run([program, str(threads)], check=True, capture_output=True, text=True).stdout
    return {row["threads"]: row for row in map(json.loads, lines.splitlines())}


def write_safetensors(path, tensors):
    """tensors: {name: (shape, bytes of float32)}."""
    header, offset = {}, 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, data in tensors.values():
            file.write(data)


def bench(tsrun, arguments, threads):
    """One `tsrun bench`: its JSON."""
    done = subprocess.run([tsrun, "bench"] + arguments + ["--threads", str(threads), "--json", "-"], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)


def flops_of(tsrun, arguments):
    """Floating-point operations that the compiled kernels of one call count, from a profile."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "profile.json"), os.path.join(folder, "out")
        subprocess.run([tsrun] + arguments + ["--threads", "1", "--profile", path, "--output-args", out + ".json",
                                              "--output", out + ".safetensors"], check=True, capture_output=True)
        with open(path) as file:
            events = json.load(file)["traceEvents"]
    return sum(e.get("args", {}).get("flops", 0) for e in events if e.get("cat") == "kernel")
