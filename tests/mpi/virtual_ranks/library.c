/* A shared library with variables. */
int library_variable = 5;
static int calls;
int library_call(void) { return ++calls; }
