/* A shared library with variables, which changes the environment when it is loaded. */
#define _DEFAULT_SOURCE /* setenv() */
#include <stdlib.h>

int library_variable = 5;
static int calls;
int library_call(void) { return ++calls; }
__attribute__((constructor)) static void set_variable(void) { setenv("SET_BY_LIBRARY", "yes", 1); }
