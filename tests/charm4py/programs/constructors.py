"""Exceptions in constructors: constructors.py MODE."""

import sys

from charm4py import Array, Chare, Future, Group, charm

import weft


class Picky(Chare):
    def __init__(self):
        if charm.myPe() == charm.numPes() - 1:
            raise ValueError("no chare here")


def kept(args):
    args.append(Array(Picky, 4))
    Future().get()


def kept_group(args):
    args.append(Group(Picky))
    Future().get()


def kept_single(args):
    args.append(Chare(Picky, onPE=charm.numPes() - 1))
    Future().get()


def dropped(args):
    Array(Picky, 4)
    Future().get()


def awaited(args):
    several = [Array(Picky, 4), Group(Picky)]
    for proxies in (several, several[1:]):
        try:
            charm.awaitCreation(*proxies)
        except weft.RemoteError as error:
            assert "no chare here" in str(error), error
        else:
            raise AssertionError("the exception was not raised")
    print("awaited passed")
    exit()


charm.start(globals()[sys.argv[1]])
