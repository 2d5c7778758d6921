/* tests/opencl/aborting_driver.c - an OpenCL driver at its worst: it ends the process that loads it. */
#include <stdlib.h>

__attribute__((constructor)) static void load(void) { abort(); }
