"""Writes include/weft/mpi/mpi_functions.h, the prototypes of mpi.h."""

from __future__ import annotations

import textwrap

from table import Topic

HEAD = """\
/* The functions of the C interface of MPI 5.0 and their profiling names, for <mpi.h>.
 * Generated from mpi/functions; change the table there and run mpi/generator/generate.py --write. */
#ifndef WEFT_MPI_MPI_FUNCTIONS_H
#define WEFT_MPI_MPI_FUNCTIONS_H

#include "mpi_constants.h"

/* clang-format off */
/* NOLINTBEGIN: this header is C. */

#ifdef __cplusplus
extern "C" {
#endif
"""
TAIL = """\
#ifdef __cplusplus
}
#endif

/* NOLINTEND */
/* clang-format on */

#endif /* WEFT_MPI_MPI_FUNCTIONS_H */
"""


def declare(prototype: str) -> list[str]:
    """A prototype in lines of at most 108 columns, broken between parameters only."""
    head, parameters = prototype.split("(", 1)
    kept = ", ".join(part.replace(" ", "\0") for part in parameters.split(", "))
    text = f"{head}(".replace(" ", "\0") + kept + ";"
    lines = textwrap.wrap(text, 108, subsequent_indent="    ", break_long_words=False)
    return [line.replace("\0", " ") for line in lines]


def functions_header(topics: list[Topic]) -> str:
    lines = [HEAD]
    for prefix in ("", "P"):
        for topic in topics:
            names = f"{topic.title}, profiling names" if prefix else topic.title
            lines.append(f"/* {names} */")
            for function in topic.functions:
                for large in (False, True) if function.has_large_form else (False,):
                    lines.extend(declare(function.prototype(large, prefix)))
            lines.append("")
    return "\n".join([*lines, TAIL])
