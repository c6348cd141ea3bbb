MemcpyHtoD,0x00007f2b00000000,65536
kernel-1.tracez
kernel-2.tracez
