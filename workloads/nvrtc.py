"""Compiles one CUDA file to PTX with NVRTC: nvrtc.py SOURCE OUTPUT [FLAG...]; nvrtc.py --version says which one.

NVRTC is a library without a command: it comes with the packages nvidia-cuda-nvrtc-cu12 and nvidia-cuda-nvrtc of
PyPI, with PyTorch and CuPy, or with a CUDA toolkit. The headers of nvidia-cuda-runtime-cu12 are on its path where
they are installed. It compiles device code only: a file with host functions is for nvcc.
"""

import ctypes
import ctypes.util
import glob
import os
import site
import sys


def roots():
    return [root + "/nvidia" for root in site.getsitepackages() + [site.getusersitepackages()]]


def toolkits():
    return [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)] + ["/usr/local/cuda"]


def library():
    patterns = [f"{root}/{part}/lib/libnvrtc.so.*" for root in roots() for part in ("cu13", "cuda_nvrtc")]
    patterns += [f"{toolkit}/lib64/libnvrtc.so" for toolkit in toolkits()]
    found = [path for pattern in patterns for path in sorted(glob.glob(pattern))]
    for path in found + [ctypes.util.find_library("nvrtc")]:
        try:
            if path:
                return ctypes.CDLL(path)
        except OSError:
            continue
    sys.exit("no NVRTC: pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-runtime-cu12")


def headers():
    folders = [f"{root}/{part}/include" for root in roots() for part in ("cu13", "cuda_runtime")]
    folders += [f"{toolkit}/include" for toolkit in toolkits()]
    found = [folder for folder in folders if os.path.exists(folder + "/cuda_runtime.h")][:1]
    # <nv/target> and <cuda/std/...>, which cooperative groups include.
    found += [f"{folder}/cccl" for folder in found] + [f"{root}/cuda_cccl/include" for root in roots()]
    return [folder for folder in found if os.path.exists(folder)]


def text(lib, program, size_of, get):
    size = ctypes.c_size_t()
    getattr(lib, size_of)(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(lib, get)(program, buffer)
    return buffer.value.decode()


def main(source, output=None, *options):
    lib = library()
    if source == "--version":
        major, minor = ctypes.c_int(), ctypes.c_int()
        lib.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        print(f"{major.value}.{minor.value}")
        return
    folders = [os.path.dirname(source) or "."] + headers()
    options = list(options) + ["--include-path=" + folder for folder in folders]
    program = ctypes.c_void_p()
    with open(source, "rb") as file:
        lib.nvrtcCreateProgram(ctypes.byref(program), file.read(), source.encode(), 0, None, None)
    flags = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    failed = lib.nvrtcCompileProgram(program, len(options), flags)
    log = text(lib, program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog").strip()
    if log:
        print(log, file=sys.stderr)
    if failed:
        if "is considered a host function" in log:
            way_out = "NVRTC compiles device code only: move the kernels to a file of their own, or use nvcc"
            print(way_out, file=sys.stderr)
        sys.exit(1)
    with open(output, "w", encoding="utf-8") as file:
        file.write(text(lib, program, "nvrtcGetPTXSize", "nvrtcGetPTX"))


main(*sys.argv[1:])
