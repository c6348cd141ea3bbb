"""Compiles one CUDA file to PTX with NVRTC through ctypes: nvrtc.py SOURCE OUTPUT [OPTION...]."""

import ctypes
import glob
import site
import sys


def load():
    roots = site.getsitepackages() + [site.getusersitepackages()]
    for root in roots:
        for path in sorted(glob.glob(root + "/nvidia/cuda_nvrtc/lib/libnvrtc.so.*")):
            return ctypes.CDLL(path)
    sys.exit("no libnvrtc")


def main(source, output, *options):
    lib = load()
    text = open(source, "rb").read()
    program = ctypes.c_void_p()
    lib.nvrtcCreateProgram(ctypes.byref(program), text, source.encode(), 0, None, None)
    if not any("arch" in o for o in options):
        options = ("--gpu-architecture=compute_60",) + tuple(options)
    flags = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    failed = lib.nvrtcCompileProgram(program, len(options), flags)
    size = ctypes.c_size_t()
    if failed:
        lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetProgramLog(program, log)
        sys.exit(log.value.decode())
    lib.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    lib.nvrtcGetPTX(program, ptx)
    open(output, "wb").write(ptx.value)


main(*sys.argv[1:])
