"""Task Bench on chares in Python: each column of a task graph is a chare, as in task_bench_chares.cpp.

    TASK_BENCH=FOLDER weft run -n 2 task_bench_chares.py -type stencil_1d -steps 100 -width 4

FOLDER is Task Bench, whose core library is built: core/libcore.so. The options are the library's.
"""

import ctypes
import os
import sys
import time
from collections import defaultdict
from pathlib import Path

import weft


class Kernel(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("iterations", ctypes.c_long),
        ("samples", ctypes.c_int),
        ("imbalance", ctypes.c_double),
    )


class Graph(ctypes.Structure):
    """task_graph_t of core_c.h."""

    _fields_ = (
        ("graph_index", ctypes.c_long),
        ("timesteps", ctypes.c_long),
        ("max_width", ctypes.c_long),
        ("dependence", ctypes.c_int),
        ("radix", ctypes.c_long),
        ("period", ctypes.c_long),
        ("fraction_connected", ctypes.c_double),
        ("kernel", Kernel),
        ("output_bytes_per_task", ctypes.c_size_t),
        ("scratch_bytes_per_task", ctypes.c_size_t),
        ("nb_fields", ctypes.c_int),
    )


class Interval(ctypes.Structure):
    _fields_ = (("first", ctypes.c_long), ("last", ctypes.c_long))


def load_core():
    """The library, with the types of the functions in use. Its handles are structs of one pointer."""
    long, pointer = ctypes.c_long, ctypes.c_void_p
    folder = os.environ.get("TASK_BENCH")
    if folder is None:
        sys.exit("TASK_BENCH names no folder of Task Bench: see benchmarks/task_bench/README.md")
    core = ctypes.CDLL(str(Path(folder) / "core/libcore.so"))
    for name, result, arguments in (
        ("app_create", pointer, (ctypes.c_int, ctypes.POINTER(ctypes.c_char_p))),
        ("app_display", None, (pointer,)),
        ("app_report_timing", None, (pointer, ctypes.c_double)),
        ("app_task_graphs", pointer, (pointer,)),
        ("task_graph_list_num_task_graphs", long, (pointer,)),
        ("task_graph_list_task_graph", Graph, (pointer, long)),
        ("task_graph_offset_at_timestep", long, (Graph, long)),
        ("task_graph_width_at_timestep", long, (Graph, long)),
        ("task_graph_max_dependence_sets", long, (Graph,)),
        ("task_graph_dependence_set_at_timestep", long, (Graph, long)),
        ("task_graph_dependencies", pointer, (Graph, long, long)),
        ("task_graph_reverse_dependencies", pointer, (Graph, long, long)),
        ("interval_list_num_intervals", long, (pointer,)),
        ("interval_list_interval", Interval, (pointer, long)),
        ("interval_list_destroy", None, (pointer,)),
        ("task_graph_prepare_scratch", None, (pointer, ctypes.c_size_t)),
    ):
        function = getattr(core, name)
        function.restype, function.argtypes = result, arguments
    core.task_graph_execute_point_scratch.restype = None
    return core


core = load_core()
arguments = [argument.encode() for argument in sys.argv]
app = core.app_create(len(arguments), (ctypes.c_char_p * (len(arguments) + 1))(*arguments, None))
graph_list = core.app_task_graphs(app)
graphs = [
    core.task_graph_list_task_graph(graph_list, i)
    for i in range(core.task_graph_list_num_task_graphs(graph_list))
]


def points_of(intervals):
    """The points of a list of intervals, in their order."""
    count = core.interval_list_num_intervals(intervals)
    found = [core.interval_list_interval(intervals, i) for i in range(count)]
    core.interval_list_destroy(intervals)
    return [point for interval in found for point in range(interval.first, interval.last + 1)]


class Plan:
    """What each step of a graph needs, asked of the core once on each PE."""

    def __init__(self, graph):
        self.graph = graph
        self.active = [
            range(offset, offset + core.task_graph_width_at_timestep(graph, step))
            for step in range(graph.timesteps)
            for offset in [core.task_graph_offset_at_timestep(graph, step)]
        ]
        self.sets = [
            core.task_graph_dependence_set_at_timestep(graph, step) for step in range(graph.timesteps)
        ]

    def by_step(self, ask, here, steps):
        """For each step: the points that `ask` names for its set, which have a task `steps` later."""
        sets = [
            points_of(ask(self.graph, number, here))
            for number in range(core.task_graph_max_dependence_sets(self.graph))
        ]
        result = []
        for step, active in enumerate(self.active):
            of_set, other = (step, step - 1) if steps < 0 else (step + 1, step + 1)
            is_in = here in active and 0 <= other < len(self.active)
            result.append([p for p in sets[self.sets[of_set]] if p in self.active[other]] if is_in else [])
        return result


plans = [Plan(graph) for graph in graphs]


class Column(weft.Chare):
    def __init__(self, number):
        plan = plans[number]
        self.graph, self.active = plan.graph, plan.active
        self.needs = plan.by_step(core.task_graph_dependencies, self.index, -1)
        self.feeds = plan.by_step(core.task_graph_reverse_dependencies, self.index, 1)
        self.peers = list(self.proxy)
        self.step = self.num_tasks = 0
        self.running = False
        self.inputs = defaultdict(dict)
        self.output = ctypes.create_string_buffer(self.graph.output_bytes_per_task)
        self.scratch = ctypes.create_string_buffer(self.graph.scratch_bytes_per_task)
        if self.scratch:
            core.task_graph_prepare_scratch(self.scratch, len(self.scratch))

    def run(self, done):
        self.done = done
        self.running = True
        self._advance()

    def take(self, step, origin, output):
        self.inputs[step][origin] = output
        if self.running and step == self.step:
            self._advance()

    def _advance(self):
        while self.step < self.graph.timesteps:
            needs = self.needs[self.step]
            if len(self.inputs[self.step]) < len(needs):
                return
            inputs = self.inputs.pop(self.step)
            if self.index in self.active[self.step]:
                self._execute([inputs[point] for point in needs])
            self.step += 1
        self.running = False
        num_tasks, self.num_tasks, self.step = self.num_tasks, 0, 0
        self.contribute(num_tasks, weft.Reducer.sum, self.done)

    def _execute(self, inputs):
        count, size = len(inputs), len(self.output)
        core.task_graph_execute_point_scratch(
            self.graph,
            ctypes.c_long(self.step),
            ctypes.c_long(self.index),
            self.output,
            ctypes.c_size_t(size),
            (ctypes.c_char_p * count)(*inputs),
            (ctypes.c_size_t * count)(*[size] * count),
            ctypes.c_size_t(count),
            self.scratch,
            ctypes.c_size_t(len(self.scratch)),
        )
        self.num_tasks += 1
        output = self.output.raw
        for point in self.feeds[self.step]:
            if point == self.index:
                self.inputs[self.step + 1][point] = output
            else:
                self.peers[point].take(self.step + 1, self.index, output)


async def main():
    core.app_display(app)
    columns = [await weft.Array(Column, graph.max_width, args=(i,)) for i, graph in enumerate(graphs)]
    for _ in range(2):
        begin = time.perf_counter()
        done = [weft.Future() for _ in columns]
        for array, future in zip(columns, done, strict=True):
            array.run(future)
        for plan, future in zip(plans, done, strict=True):
            assert await future == sum(map(len, plan.active)), "not every task has run once"
        elapsed_s = time.perf_counter() - begin
    core.app_report_timing(app, elapsed_s)


weft.run(main)
