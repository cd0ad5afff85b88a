"""An index gather, as index_gather.cpp: each PE reads words of a table that lies on all PEs.

    index_gather.py --way single|aggregated [--reads N] [--chares N] [--words N] [--runs N]

Prints the millions of words per second of all PEs together. A read is a call of the chare that has the word,
and its answer is a call of the reader.
"""

import argparse
import json
import time

import numpy as np
from measuring import pin

import weft


class Table(weft.Chare):
    def __init__(self):
        first = self.index * OPTIONS.words
        self.words = words_at(np.arange(first, first + OPTIONS.words)).tolist()

    def know_readers(self, readers):
        self.take = readers.aggregated().take if OPTIONS.way == "aggregated" else None
        self.readers = readers

    def read(self, word, reader, slot):
        if self.take is not None:
            self.take(reader, slot, self.words[word])
        else:
            self.readers[reader].take(slot, self.words[word])


class Reader(weft.Chare):
    def __init__(self):
        pin(weft.my_pe())
        num_words = OPTIONS.chares * weft.num_pes() * OPTIONS.words
        self.places = np.random.default_rng(weft.my_pe()).integers(num_words, size=OPTIONS.reads)

    async def gather(self, tables):
        self.values = [0] * OPTIONS.reads
        chares, words = (part.tolist() for part in np.divmod(self.places, OPTIONS.words))
        me = weft.my_pe()
        if OPTIONS.way == "aggregated":
            read = tables.aggregated().read
            for slot, (chare, word) in enumerate(zip(chares, words, strict=True)):
                await read(chare, word, me, slot)
        else:
            for slot, (chare, word) in enumerate(zip(chares, words, strict=True)):
                await tables[chare].read(word, me, slot)

    def take(self, slot, value):
        self.values[slot] += value

    def num_wrong(self):
        return int(np.count_nonzero(np.array(self.values) != words_at(self.places)))


def words_at(places):
    """What the table holds there."""
    return places * 2654435761 % 1_000_003 + 1


async def main():
    tables = weft.Array(Table, OPTIONS.chares * weft.num_pes())
    readers = weft.Group(Reader)
    tables.know_readers(readers)
    times_s = []
    for _ in range(OPTIONS.runs):
        await weft.quiescence()
        start = time.perf_counter()
        readers.gather(tables)
        await weft.quiescence()
        times_s.append(time.perf_counter() - start)
        assert sum(await readers.num_wrong.call()) == 0, "words were read wrong"
    rate = OPTIONS.reads * weft.num_pes() / min(times_s) / 1e6
    print(json.dumps({"size_bytes": 8, "metric": "rate_Mps", "value": rate}), flush=True)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--way", choices=("single", "aggregated"), default="aggregated")
parser.add_argument("--reads", type=int, default=200_000, help="of each PE and run")
parser.add_argument("--chares", type=int, default=4, help="of each PE")
parser.add_argument("--words", type=int, default=65536, help="of each chare")
parser.add_argument("--runs", type=int, default=5)
OPTIONS = parser.parse_args()

weft.run(main)
